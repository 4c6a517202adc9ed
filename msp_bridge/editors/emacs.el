;;; msp-bridge.el --- mutants that no test kills  -*- lexical-binding: t; -*-

;; Package-Requires: ((emacs "28.1") (jsonrpc "1.0.14"))

;;; Commentary:

;; Put this into your init file, or load it from there.  Then
;;
;;   M-x msp-bridge-test          tests the mutants of this file; with an active region, of its lines
;;   M-x msp-bridge-test-project  tests the whole project
;;   M-x msp-bridge-stop          stops
;;
;; What survives is listed in the buffer *mutants*, where RET goes to the place.

;;; Code:

(require 'compile)
(require 'jsonrpc)
(require 'project)
(require 'seq)

(defvar msp-bridge-command '("msp-bridge" "serve" "stdio")
  "What starts the server; a project with msp-bridge in its .venv starts that.")

(defvar msp-bridge--servers nil "Connections by the directory of the project.")

(defun msp-bridge--root ()
  "The directory of the project that the current buffer belongs to."
  (let ((project (project-current)))
    (expand-file-name
     (cond ((locate-dominating-file default-directory "msp-bridge.toml"))
           (project (project-root project))
           ((locate-dominating-file default-directory #'msp-bridge--has-project))
           (default-directory)))))

(defun msp-bridge--has-project (directory)
  "Whether the files of DIRECTORY say that it is the root of a project."
  (seq-some (lambda (name) (file-exists-p (expand-file-name name directory)))
            '("pyproject.toml" "package.json" "Cargo.toml" "go.mod" "pom.xml")))

(defun msp-bridge--server (root)
  "The connection to the server of the project at ROOT, started if need be."
  (let ((known (cdr (assoc root msp-bridge--servers))))
    (if (and known (jsonrpc-running-p known))
        known
      (let* ((default-directory root)
             (own (expand-file-name ".venv/bin/msp-bridge" root))
             (command (if (file-executable-p own)
                          (cons own (cdr msp-bridge-command))
                        msp-bridge-command))
             (server (make-instance
                      'jsonrpc-process-connection
                      :name "msp-bridge"
                      :process (make-process :name "msp-bridge" :command command :connection-type 'pipe
                                             :coding 'utf-8-emacs-unix :noquery t
                                             :stderr (get-buffer-create "*msp-bridge stderr*"))
                      :notification-dispatcher
                      (lambda (_server method params)
                        (when (eq method 'reportMutationTestProgress)
                          (msp-bridge--show (plist-get params :files)))))))
        (setf (alist-get root msp-bridge--servers nil nil #'equal) server)
        (jsonrpc-request server :configure (make-hash-table))
        server))))

(defun msp-bridge--say (text)
  "Add TEXT, a line, to the buffer *mutants*."
  (with-current-buffer (get-buffer-create "*mutants*")
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char (point-max))
        (insert text "\n")))))

(defun msp-bridge--show (files)
  "List what survived of FILES: a property list of paths."
  (while files
    (let ((path (substring (symbol-name (pop files)) 1)))
      (mapc (lambda (mutant)
              (when (member (plist-get mutant :status) '("Survived" "NoCoverage"))
                (let ((start (plist-get (plist-get mutant :location) :start)))
                  (msp-bridge--say
                   (format "%s:%d:%d: %s: %s, %s" path (plist-get start :line) (plist-get start :column)
                           (plist-get mutant :status) (plist-get mutant :mutatorName)
                           (car (split-string (or (plist-get mutant :replacement) "") "\n")))))))
            (plist-get (pop files) :mutants)))))

(defun msp-bridge--test (params)
  "Ask for mutationTest with PARAMS, in a fresh buffer *mutants*."
  (save-some-buffers nil (lambda () buffer-file-name)) ; the tests run on what is on disk
  (let ((root (msp-bridge--root)))
    (with-current-buffer (get-buffer-create "*mutants*")
      (setq default-directory root)
      (compilation-mode)
      (let ((inhibit-read-only t))
        (erase-buffer))
      (display-buffer (current-buffer)))
    (jsonrpc-async-request
     (msp-bridge--server root) :mutationTest params
     :timeout nil
     :success-fn (lambda (_result) (msp-bridge--say "\nMutation testing is done."))
     :error-fn (lambda (err) (msp-bridge--say (format "\n%s" (plist-get err :message)))))))

;;;###autoload
(defun msp-bridge-test (&optional first last)
  "Test the mutants of this file, or of the lines FIRST to LAST of it."
  (interactive (when (use-region-p)
                 (list (line-number-at-pos (region-beginning)) (line-number-at-pos (region-end)))))
  (let ((target (list :path buffer-file-name)))
    (when first
      (setq target (append target (list :range (list :start (list :line first :column 1)
                                                     :end (list :line (1+ last) :column 1))))))
    (msp-bridge--test (list :files (vector target)))))

;;;###autoload
(defun msp-bridge-test-project ()
  "Test the mutants of the whole project."
  (interactive)
  (msp-bridge--test (make-hash-table)))

;;;###autoload
(defun msp-bridge-stop ()
  "End every server, and with it what it has started."
  (interactive)
  (dolist (known msp-bridge--servers)
    (when (jsonrpc-running-p (cdr known))
      (delete-process (jsonrpc--process (cdr known)))))
  (setq msp-bridge--servers nil))

(provide 'msp-bridge)
;;; msp-bridge.el ends here
