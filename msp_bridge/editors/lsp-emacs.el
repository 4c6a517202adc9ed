;; msp-bridge in Emacs (29 and newer) as a language server: mutants that no test notices, as diagnostics.
;; Put this into init.el; M-x eglot starts it. Eglot has one server for each mode: one of yours that you
;; want beside it needs a multiplexer, or use `msp-bridge editors emacs`.
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((python-mode python-ts-mode js-mode js-ts-mode typescript-ts-mode csharp-mode rust-mode rust-ts-mode)
                 . ("msp-bridge" "serve" "stdio" "--dialect" "lsp"))))
