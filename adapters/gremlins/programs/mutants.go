// Command mutants finds the text of gremlins' mutants, and writes many of them into one program.
//
// gremlins names a mutant by its type and the position of a token, changes the token in the syntax tree, and prints the
// tree (internal/engine/tokenmutator.go, v0.6.0). This program finds the text edit that gives the same tree: the token,
// or the whole expression in parentheses where the new operator binds otherwise.
//
// A program with one mutant takes half a second to build, most of it for the linker, and some milliseconds to test. So
// "combine" writes many mutants into one program: each is a copy of its function under another name, and the function
// begins with a switch that calls the copy whose number the environment names. Nothing else of the function changes, and
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
	"sort"
	"strings"
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

// replacements is gremlins' table tokenMutations (internal/engine/mappings.go, v0.6.0).
var replacements = map[string]map[token.Token]token.Token{
	"ARITHMETIC_BASE": {
		token.ADD: token.SUB, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL, token.SUB: token.ADD,
	},
	"CONDITIONALS_BOUNDARY": {
		token.GEQ: token.GTR, token.GTR: token.GEQ, token.LEQ: token.LSS, token.LSS: token.LEQ,
	},
	"CONDITIONALS_NEGATION": {
		token.EQL: token.NEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR, token.LSS: token.GEQ,
		token.NEQ: token.EQL,
	},
	"INCREMENT_DECREMENT": {token.DEC: token.INC, token.INC: token.DEC},
	"INVERT_ASSIGNMENTS": {
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
		token.REM_ASSIGN: token.REM_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	},
	"INVERT_BITWISE": {
		token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND, token.AND_NOT: token.AND, token.SHL: token.SHR,
		token.SHR: token.SHL,
	},
	"INVERT_BWASSIGN": {
		token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.XOR_ASSIGN: token.AND_ASSIGN,
		token.AND_NOT_ASSIGN: token.AND_ASSIGN, token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
	},
	"INVERT_LOGICAL":   {token.LAND: token.LOR, token.LOR: token.LAND},
	"INVERT_LOOPCTRL":  {token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK},
	"INVERT_NEGATIVES": {token.SUB: token.ADD},
	"REMOVE_SELF_ASSIGNMENTS": {
		token.ADD_ASSIGN: token.ASSIGN, token.AND_ASSIGN: token.ASSIGN, token.AND_NOT_ASSIGN: token.ASSIGN,
		token.MUL_ASSIGN: token.ASSIGN, token.OR_ASSIGN: token.ASSIGN, token.QUO_ASSIGN: token.ASSIGN,
		token.REM_ASSIGN: token.ASSIGN, token.SHL_ASSIGN: token.ASSIGN, token.SHR_ASSIGN: token.ASSIGN,
		token.SUB_ASSIGN: token.ASSIGN, token.XOR_ASSIGN: token.ASSIGN,
	},
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

// place is a token that can be mutated, with the nodes around it, the file first.
type place struct {
	token token.Token
	pos   token.Pos
	path  []ast.Node
}

func list(file listedFile) fileEdits {
	text, err := os.ReadFile(file.Path)
	if err != nil {
		return fileEdits{Error: err.Error()}
	}
	parsed, err := parse(file.Path, text)
	if err != nil {
		return fileEdits{Error: err.Error()}
	}
	places := parsed.places()
	edits := []edit{}
	for _, mutant := range file.Mutants {
		found, ok := places[[2]int{mutant.Line, mutant.Column}]
		replacement := replacements[mutant.Type][found.token]
		if !ok || replacement == token.ILLEGAL {
			return fileEdits{Error: fmt.Sprintf("no token at %d:%d is one of %s", mutant.Line, mutant.Column, mutant.Type)}
		}
		edits = append(edits, parsed.edit(found, replacement))
	}
	return fileEdits{Edits: edits}
}

// places has the tokens that gremlins can mutate (internal/engine/node.go), by line and column. `//line` comments
// count, as for gremlins.
func (s source) places() map[[2]int]place {
	found := map[[2]int]place{}
	var path []ast.Node
	ast.Inspect(s.file, func(node ast.Node) bool {
		if node == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, node)
		at := place{path: append([]ast.Node(nil), path...)}
		switch node := node.(type) {
		case *ast.AssignStmt:
			at.token, at.pos = node.Tok, node.TokPos
		case *ast.BinaryExpr:
			at.token, at.pos = node.Op, node.OpPos
		case *ast.BranchStmt:
			at.token, at.pos = node.Tok, node.TokPos
		case *ast.IncDecStmt:
			at.token, at.pos = node.Tok, node.TokPos
		case *ast.UnaryExpr:
			at.token, at.pos = node.Op, node.OpPos
		default:
			return true
		}
		position := s.set.Position(at.pos)
		found[[2]int{position.Line, position.Column}] = at
		return true
	})
	return found
}

func (s source) edit(at place, replacement token.Token) edit {
	start := s.offset(at.pos)
	found := edit{Start: start, End: start + len(at.token.String()), Text: replacement.String(), Alone: true}
	if found.End < len(s.text) && strings.ContainsRune("*/", rune(s.text[found.End])) {
		found.Text += " " // else a comment could begin here
	}
	if binary, ok := at.path[len(at.path)-1].(*ast.BinaryExpr); ok {
		if text, whole := s.regrouped(binary, replacement, at.path[len(at.path)-2]); whole {
			found.Start, found.End, found.Text = s.offset(binary.Pos()), s.offset(binary.End()), text
		}
	}
	if function, ok := at.path[1].(*ast.FuncDecl); ok {
		found.Function = []int{s.offset(function.Pos()), s.offset(function.End())}
		inBody := function.Body != nil && function.Body.Pos() < at.pos
		found.Alone = !inBody || !s.canCopy(function)
	}
	return found
}

// regrouped is the text of the expression with the operator `new`, with the parentheses that keep its operands; false
// if it needs none.
func (s source) regrouped(node *ast.BinaryExpr, new token.Token, parent ast.Node) (string, bool) {
	x, y, around := s.of(node.X), s.of(node.Y), false
	left, right := false, false
	if operand, ok := node.X.(*ast.BinaryExpr); ok && operand.Op.Precedence() < new.Precedence() {
		x, left = "("+x+")", true
	}
	if operand, ok := node.Y.(*ast.BinaryExpr); ok && operand.Op.Precedence() <= new.Precedence() {
		y, right = "("+y+")", true
	}
	if outer, ok := parent.(*ast.BinaryExpr); ok {
		around = outer.Op.Precedence() > new.Precedence() || (outer.Y == node && outer.Op.Precedence() == new.Precedence())
	}
	between := string(s.text[s.offset(node.X.End()):s.offset(node.OpPos)])
	after := string(s.text[s.offset(node.OpPos)+len(node.Op.String()) : s.offset(node.Y.Pos())])
	text := x + between + new.String() + after + y
	if around {
		text = "(" + text + ")"
	}
	return text, around || left || right
}

// canCopy: a copy of the function behaves as the function. One that calls recover has to be called by defer itself;
// directives of the compiler hold for one function.
func (s source) canCopy(function *ast.FuncDecl) bool {
	if function.Doc != nil {
		for _, comment := range function.Doc.List {
			if strings.HasPrefix(comment.Text, "//go:") || strings.HasPrefix(comment.Text, "//export ") {
				return false
			}
		}
	}
	for _, imported := range s.file.Imports {
		if imported.Path.Value == `"C"` {
			return false
		}
	}
	if function.Type.TypeParams != nil {
		for _, field := range function.Type.TypeParams.List {
			for _, name := range field.Names {
				if name.Name == "_" {
					return false
				}
			}
		}
	}
	copyable := true
	ast.Inspect(function.Body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "recover" {
				copyable = false
			}
		}
		return copyable
	})
	return copyable
}

// change is an edit of a text; edits at one place are made in their order.
type change struct {
	start, end int
	text       string
}

func changed(text []byte, changes []change) string {
	sort.SliceStable(changes, func(i, j int) bool { return changes[i].start < changes[j].start })
	var made strings.Builder
	at := 0
	for _, each := range changes {
		made.Write(text[at:each.start])
		made.WriteString(each.text)
		at = each.end
	}
	made.Write(text[at:])
	return made.String()
}

// combine writes each mutant as a copy of its function, and a switch into the function. The copy has the lines of the
// function, for what the program says of itself, or is a file of its own, gremlin_N.go.
func combine(file combinedFile) (string, error) {
	parsed, err := parse(file.Path, []byte(file.Text))
	if err != nil {
		return "", err
	}
	var changes []change
	copies := "\n"
	for _, declared := range parsed.file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok {
			continue
		}
		var cases string
		start, end := parsed.offset(function.Pos()), parsed.offset(function.End())
		call, named := parsed.call(function)
		line := parsed.set.Position(function.Pos())
		for _, mutant := range file.Mutants {
			if mutant.Start < start || mutant.End > end {
				continue
			}
			name := fmt.Sprintf("gremlin%d_%s", mutant.Number, function.Name.Name)
			cases += fmt.Sprintf("case %d: %s; ", mutant.Number, fmt.Sprintf(call, name))
			if file.LinesNameMutants {
				line = token.Position{Filename: fmt.Sprintf("gremlin_%d.go", mutant.Number), Line: 1}
			}
			copies += fmt.Sprintf("//line %s:%d\n", line.Filename, line.Line) + changed(parsed.text[start:end], []change{
				{parsed.offset(function.Name.Pos()) - start, parsed.offset(function.Name.End()) - start, name},
				{mutant.Start - start, mutant.End - start, mutant.Text},
			}) + "\n"
		}
		if cases != "" {
			brace := parsed.offset(function.Body.Lbrace) + 1
			changes = append(changes, named...)
			changes = append(changes, change{brace, brace, " switch gremlin__ { " + cases + "}; "})
		}
	}
	return changed(parsed.text, changes) + copies, nil
}

// call is the statement that calls a copy of the function, with %s for its name, and the changes that give a name to
// each parameter that has none.
func (s source) call(function *ast.FuncDecl) (string, []change) {
	var named []change
	count := 0
	names := func(field *ast.Field) []string {
		var found []string
		for _, name := range field.Names {
			if name.Name != "_" {
				found = append(found, name.Name)
				continue
			}
			count++
			found = append(found, fmt.Sprintf("gremlinP%d", count))
			named = append(named, change{s.offset(name.Pos()), s.offset(name.End()), found[len(found)-1]})
		}
		if len(field.Names) == 0 {
			count++
			found = append(found, fmt.Sprintf("gremlinP%d", count))
			named = append(named, change{s.offset(field.Pos()), s.offset(field.Pos()), found[0] + " "})
		}
		return found
	}
	called := "%s"
	if function.Recv != nil {
		called = names(function.Recv.List[0])[0] + ".%s"
	} else if function.Type.TypeParams != nil {
		var types []string
		for _, field := range function.Type.TypeParams.List {
			types = append(types, names(field)...)
		}
		called += "[" + strings.Join(types, ", ") + "]"
	}
	var arguments []string
	for _, field := range function.Type.Params.List {
		for _, name := range names(field) {
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			arguments = append(arguments, name)
		}
	}
	called += "(" + strings.Join(arguments, ", ") + ")"
	if function.Type.Results != nil && len(function.Type.Results.List) > 0 {
		return "return " + called, named
	}
	return called + "; return", named
}
