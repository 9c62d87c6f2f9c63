package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// comments returns the comments of a file's struct types and their fields, as TYPE and TYPE.FIELD.
func comments(source []byte) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "entry.go", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	docs := map[string]string{}
	for _, d := range file.Decls {
		types, ok := d.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		spec := types.Specs[0].(*ast.TypeSpec)
		docs[spec.Name.Name] = line(types.Doc)
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					docs[spec.Name.Name+"."+name.Name] = line(f.Doc)
				}
			}
		}
	}
	return docs, nil
}

func line(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }
