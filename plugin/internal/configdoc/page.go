package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
)

// A setting is one row of the table.
type setting struct{ key, kind, standard, text string }

// generate makes the page out of the source of the configuration's types: a
// setting for each field with a json tag, described by the field's comment. A
// line "default: …" or "required" of a comment goes into a column of its own.
func generate(source []byte) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	structs := map[string]*ast.StructType{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = s
			}
		}
		return true
	})
	settings, err := settingsOf("", "Config", structs)
	if err != nil {
		return nil, err
	}
	return page(settings), nil
}

// settingsOf lists the settings of a struct, those of sections in it included.
func settingsOf(prefix, name string, structs map[string]*ast.StructType) ([]setting, error) {
	declared, ok := structs[name]
	if !ok {
		return nil, fmt.Errorf("no struct %s", name)
	}
	var settings []setting
	for _, field := range declared.Fields.List {
		if field.Tag == nil {
			continue
		}
		key := prefix + reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		kind := kindOf(field.Type)
		if _, isSection := structs[kind]; isSection {
			inner, err := settingsOf(key+".", kind, structs)
			if err != nil {
				return nil, err
			}
			settings = append(settings, inner...)
			continue
		}
		if field.Doc == nil {
			return nil, fmt.Errorf("setting %s has no comment", key)
		}
		standard, text := split(field.Doc.Text())
		settings = append(settings, setting{key, kind, standard, text})
	}
	return settings, nil
}

func kindOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr: // tells one that is not set from its zero
		return kindOf(e.X)
	case *ast.Ident:
		return map[string]string{"int": "number", "bool": "boolean", "Duration": "duration"}[e.Name] + nameOfSection(e.Name)
	case *ast.ArrayType:
		return "list of strings"
	case *ast.MapType:
		return "section of strings"
	default:
		return ""
	}
}

// nameOfSection keeps the names of types that have no word of their own.
func nameOfSection(name string) string {
	switch name {
	case "int", "bool", "Duration":
		return ""
	default:
		return name
	}
}

// split takes the line about the default out of a comment.
func split(comment string) (standard, text string) {
	var words []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		if value, ok := strings.CutPrefix(line, "default: "); ok {
			standard = value
		} else if line == "required" {
			standard = "required"
		} else if line != "" {
			words = append(words, line)
		}
	}
	return standard, strings.Join(words, " ")
}

const head = `# Plugin configuration

<!-- Written by plugin/internal/configdoc from plugin/config.go: go generate ./plugin -->

Every setting of ` + "`[runners.autoscaler.plugin_config]`" + `. The plugin refuses to start if a key is unknown, or a value is wrong by itself. If a flavor, image, network, security group, server group, key pair, availability zone or volume type does not exist, or cannot be looked up, the plugin starts, keeps and deletes the servers that exist, and creates none until it finds all of them. The command ` + "`check`" + ` reports everything that is wrong at once. Durations are strings with a unit, such as ` + "`\"15m\"`" + `.

| Setting | Type | Default | Description |
| --- | --- | --- | --- |
`

const tail = `
` + "`max_instances`" + ` of the runner limits the group, up to 1,000 servers.

` + "`fleeting-plugin-openstack check --config FILE`" + ` tries a configuration without creating anything.
`

func page(settings []setting) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for _, s := range settings {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.key, s.kind, s.standard, strings.ReplaceAll(s.text, "|", `\|`))
	}
	b.WriteString(tail)
	return b.Bytes()
}
