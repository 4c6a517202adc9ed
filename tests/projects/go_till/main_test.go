package main

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "till" {
		os.Exit(change(45, 3))
	}
	if os.Getenv("TILL") == "" {
		os.Exit(m.Run())
	}
	main()
	os.Exit(0)
}

func TestSum(t *testing.T) {
	command := exec.Command(os.Args[0], "41")
	command.Env = []string{"TILL=1"}
	if out, err := command.CombinedOutput(); err != nil || string(out) != "42\n" {
		t.Fatal(err, string(out))
	}
}

// Commands of testscript are such copies.
func TestCopy(t *testing.T) {
	file, _ := os.Executable()
	program, _ := os.ReadFile(file)
	till := filepath.Join(t.TempDir(), "till")
	os.WriteFile(till, program, 0700)
	command := exec.Command(till)
	command.Env = []string{"HOME=/nowhere"}
	command.Run()
	if command.ProcessState.ExitCode() != 42 {
		t.Fatal(command.ProcessState)
	}
}

func TestExitCode(t *testing.T) {
	if exitCode(0) != 0 {
		t.Fatal()
	}
	if out, _ := exec.Command("go", "run", "main.go", "faults_checked.go", "x").CombinedOutput(); string(out) != "exit status 4\n" {
		t.Fatal(string(out))
	}
}

func TestWarn(t *testing.T) {
	var out strings.Builder
	warn(log.New(&out, "", log.Lshortfile), 10)
	warn(log.New(&out, "", log.Lshortfile), 9)
	if out.String() != "main.go:27: 10\n" {
		t.Fatal(out.String())
	}
}
