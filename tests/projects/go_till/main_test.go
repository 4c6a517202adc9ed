package main

import (
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
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
