// The text edits of gremlins' mutants.

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
)

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
		made := parsed.edit(found, replacement)
		made.Ignored, made.Comment = parsed.ignored(found.pos, mutant.Type)
		edits = append(edits, made)
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

// nomutant is the comment that is proposed for gremlins: https://github.com/go-gremlins/gremlins/issues/180
var nomutant = regexp.MustCompile(`^//nomutant(?::([a-z,-]+))?(?:\s|$)`)

// ignored is the comment at the end of the line by which a mutant is left out, and where one can be added.
func (s source) ignored(pos token.Pos, mutator string) (string, int) {
	offset := s.offset(pos)
	end := offset + bytes.IndexByte(append(s.text[offset:len(s.text):len(s.text)], '\n'), '\n')
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			start := s.offset(comment.Pos())
			if start <= offset || start >= end || !strings.HasPrefix(comment.Text, "//") {
				continue
			}
			found := nomutant.FindStringSubmatch(comment.Text)
			name := strings.ReplaceAll(strings.ToLower(mutator), "_", "-")
			if found != nil && (found[1] == "" || strings.Contains(","+found[1]+",", ","+name+",")) {
				return comment.Text, -1
			}
			return "", start
		}
	}
	if s.isWithin(end) {
		return "", -1
	}
	return "", end - len(s.text[offset:end]) + len(bytes.TrimRight(s.text[offset:end], "\r"))
}

// isWithin: the place is in a text or in a comment.
func (s source) isWithin(place int) bool {
	within := false
	look := func(node ast.Node) bool {
		switch node.(type) {
		case *ast.BasicLit, *ast.Comment:
			within = within || s.offset(node.Pos()) < place && place < s.offset(node.End())
		}
		return !within
	}
	ast.Inspect(s.file, look)
	for _, group := range s.file.Comments {
		ast.Inspect(group, look)
	}
	return within
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
