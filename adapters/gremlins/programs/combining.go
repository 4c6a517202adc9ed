// Many mutants in one text.

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"sort"
	"strings"
)

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

// unchanged is the number that has each function run as a copy without a change: what tests then see differs from the
// function as it is by the copying alone, as by one more caller.
const unchanged = -1

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
		add := func(number int, name string, mutated ...change) {
			cases += fmt.Sprintf("case %d: %s; ", number, fmt.Sprintf(call, name))
			if file.LinesNameMutants {
				line = token.Position{Filename: fmt.Sprintf("gremlin_%d.go", number), Line: 1}
			}
			renamed := change{parsed.offset(function.Name.Pos()) - start, parsed.offset(function.Name.End()) - start, name}
			text := changed(parsed.text[start:end], append(mutated, renamed))
			copies += fmt.Sprintf("//line %s:%d\n%s\n", line.Filename, line.Line, text)
		}
		for _, mutant := range file.Mutants {
			if mutant.Start < start || mutant.End > end {
				continue
			}
			if cases == "" {
				add(unchanged, fmt.Sprintf("gremlin%d__%s", mutant.Number, function.Name.Name))
			}
			mutated := change{mutant.Start - start, mutant.End - start, mutant.Text}
			add(mutant.Number, fmt.Sprintf("gremlin%d_%s", mutant.Number, function.Name.Name), mutated)
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
