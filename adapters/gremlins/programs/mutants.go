// Command mutants finds the text of gremlins' mutants, and writes many of them into one program.
//
// gremlins names a mutant by its type and the position of a token, changes the token in the syntax tree, and prints the
// tree (internal/engine/tokenmutator.go, v0.6.0). This program finds the text edit that gives the same tree: the token,
// or the whole expression in parentheses where the new operator binds otherwise.
//
// A program with one mutant takes half a second to build, most of it for the linker, and some milliseconds to test. So
// "combine" writes many mutants into one program: each is a copy of its function under another name, and the function
// begins with a switch that calls the copy whose number is on. Nothing else of the function changes, and
// its lines stay where they are. A mutant that no copy can hold has to be built alone.
//
// It reads a request from the file that its argument names and writes an answer to stdout, both JSON. Offsets are bytes,
// 0-based.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
)

type request struct {
	List    []listedFile   `json:"list"`
	Combine []combinedFile `json:"combine"`
}

type answer struct {
	List    []fileEdits `json:"list"`
	Combine []string    `json:"combine"` // the text of each file
}

type listedFile struct {
	Path    string     `json:"path"`
	Mutants []position `json:"mutants"`
}

type position struct {
	Type   string `json:"type"`
	Line   int    `json:"line"`   // 1-based
	Column int    `json:"column"` // 1-based, bytes
}

type fileEdits struct {
	Error string `json:"error"` // the file can't be parsed; there are no edits
	Edits []edit `json:"edits"` // one for each position
}

type edit struct {
	Start    int    `json:"start"`
	End      int    `json:"end"`
	Text     string `json:"text"`
	Function []int  `json:"function"` // start and end of the function around it; null outside of functions
	Alone    bool   `json:"alone"`    // it can't be combined with others
	Ignored  string `json:"ignored"`  // the comment that leaves it out, or empty
	Comment  int    `json:"comment"`  // where such a comment can be added; -1: nowhere
}

type combinedFile struct {
	Path             string           `json:"path"` // absolute
	Text             string           `json:"text"`
	Mutants          []numberedMutant `json:"mutants"`
	LinesNameMutants bool             `json:"linesNameMutants"` // for the compiler's messages
}

type numberedMutant struct {
	Number int    `json:"number"` // what the environment selects it by, from 1 on
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Text   string `json:"text"`
}

func main() {
	var wanted request
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fatal(err)
	}
	if err := json.Unmarshal(text, &wanted); err != nil {
		fatal(err)
	}
	var given answer
	for _, file := range wanted.List {
		given.List = append(given.List, list(file))
	}
	for _, file := range wanted.Combine {
		text, err := combine(file)
		if err != nil {
			fatal(err)
		}
		given.Combine = append(given.Combine, text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(given); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// source is a parsed file.
type source struct {
	text []byte
	set  *token.FileSet
	file *ast.File
}

func parse(path string, text []byte) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{text, set, file}, err
}

func (s source) offset(pos token.Pos) int { return s.set.PositionFor(pos, false).Offset }

func (s source) of(node ast.Node) string {
	return string(s.text[s.offset(node.Pos()):s.offset(node.End())])
}
