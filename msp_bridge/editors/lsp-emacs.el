;; msp-bridge in Emacs as a language server: mutants that no test kills, as diagnostics. Eglot is part of Emacs 29;
;; for Emacs 26 to 28 it is a package. Put this into init.el; M-x eglot starts it. Eglot has one server for each mode: one of yours that you
;; want beside it needs a multiplexer, or use `msp-bridge editors emacs`.
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((python-mode python-ts-mode js-mode js-ts-mode typescript-ts-mode csharp-mode rust-mode rust-ts-mode
                 go-mode go-ts-mode java-mode java-ts-mode kotlin-mode kotlin-ts-mode)
                 . ("msp-bridge" "serve" "stdio" "--dialect" "lsp"))))
