" msp-bridge in Vim and Neovim: mutants that no test kills, in the quickfix list.
" For every project: save this as ~/.vim/compiler/mutants.vim (Neovim: ~/.config/nvim/compiler/mutants.vim). Then
"
"   :compiler mutants
"   :make %                 tests the mutants of this file
"   :make %:20-40           of some of its lines
"   :make                   of the whole project
"
" Vim waits until it is done; `neovim` has a plugin that doesn't.

if exists("current_compiler")
  finish
endif
let current_compiler = "mutants"

CompilerSet makeprg=msp-bridge\ run
CompilerSet errorformat=Survived\ \ %f:%l:%c\ \ %m,NoCoverage\ \ %f:%l:%c\ \ %m,%-G%.%#
