package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// outputPage has what --output json writes; `make docs` writes it anew.
const outputPage = "../../docs/reference/output.md"

// results are what commands write with --output json, by their names; nil for
// those that write documents of their own.
func results() map[string]any {
	return map[string]any{
		"attest":       packager.Signed{},
		"attest-files": packager.AttestedFiles{},
		"completion":   nil,
		"doctor":       []finding{},
		"help":         nil,
		"inspect":      packager.Report{},
		"install":      []installer.Installed{},
		"list":         []listed{},
		"lock":         []lockedEntry{},
		"login":        map[string]string{},
		"logout":       map[string]string{},
		"lookpath":     installer.Installed{},
		"man":          nil,
		"licenses":     nil,
		"mirror":       []installer.Mirrored{},
		"outdated":     []installer.Outdated{},
		"package":      packager.Packed{},
		"policy check": []any{[]installer.RuleSummary{}, []match{}},
		"policy init":  map[string]string{},
		"promote":      packager.Promoted{},
		"prune":        []installer.Installed{},
		"push":         packager.Pushed{},
		"rebuild":      rebuild.Report{},
		"release":      releaseResult{},
		"resolve":      []installer.Resolution{},
		"rollback":     map[string]installer.Installed{},
		"sbom":         nil,
		"sign":         packager.Signed{},
		"uninstall":    []installer.Installed{},
		"upgrade":      []installer.Installed{},
		"verify":       []any{installer.Verified{}, []check{}},
		"verify-files": []fileCheck{},
		"version":      cli.Version{},
	}
}

// TestEveryCommandHasAResult: the page about output leaves no command out.
func TestEveryCommandHasAResult(t *testing.T) {
	t.Parallel()
	known := results()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "fleeting-plugin ")
		if cmd.Runnable() && cmd.HasParent() {
			if _, ok := known[name]; !ok {
				t.Errorf("%s: what does it write with --output json?", name)
			}
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(NewRootCmd(cli.New(nil, nil, nil, nil)))
}

// checkOutput returns what of a command's JSON is not on the page.
func checkOutput(name string, output []byte) error {
	result, ok := results()[name]
	if !ok || result == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(output, &value); err != nil {
		return fmt.Errorf("%s wrote no JSON: %w", name, err)
	}
	forms, ok := result.([]any)
	if !ok {
		forms = []any{result}
	}
	var errs []error
	for _, form := range forms {
		err := conforms(reflect.TypeOf(form), value, "")
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%s wrote what the reference does not have: %w", name, errs[0])
}

// conforms compares a JSON value with the type that it was written from.
func conforms(t reflect.Type, value any, at string) error {
	t = pointedTo(t)
	if value == nil {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			for key, one := range v {
				if err := conforms(t.Elem(), one, at+"."+key); err != nil {
					return err
				}
			}
			return nil
		case reflect.Struct:
			known := map[string]reflect.Type{}
			for _, f := range fieldsOf(t) {
				known[f.name] = f.typ
			}
			for key, one := range v {
				if known[key] == nil {
					return fmt.Errorf("field %s.%s", at, key)
				}
				if err := conforms(known[key], one, at+"."+key); err != nil {
					return err
				}
			}
			return nil
		default: // no other kind is an object
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for _, one := range v {
				if err := conforms(t.Elem(), one, at+"[]"); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		if kind := jsonKind(t); kind == reflect.TypeOf(v).String() || kind == "string" && reflect.TypeOf(v).Kind() == reflect.String || kind == "number" {
			return nil
		}
	}
	return fmt.Errorf("%T at %s, where the reference has %s", value, at, t)
}

func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// jsonKind is how a type without fields is written.
func jsonKind(t reflect.Type) string {
	text := reflect.TypeFor[encoding.TextMarshaler]()
	switch {
	case t.Implements(text), reflect.PointerTo(t).Implements(text), t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "bool"
	}
	return "number"
}

// field is a field of an object.
type field struct {
	name     string
	typ      reflect.Type
	owner    reflect.Type
	goName   string
	optional bool
}

// fieldsOf lists the JSON fields of a type, those of embedded types among them.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, fieldsOf(pointedTo(f.Type))...)
		case !f.IsExported(), name == "-":
		default:
			if name == "" {
				name = f.Name
			}
			all = append(all, field{name, pointedTo(f.Type), t, f.Name, strings.Contains(opts, "omit")})
		}
	}
	return all
}

// outputs writes the page.
type outputs struct {
	b     bytes.Buffer
	types []reflect.Type
	docs  map[string]map[string]string // of fields, by folder and "Type.Field"
	t     *testing.T
}

// shape names the form of a value, and remembers its type.
func (o *outputs) shape(t reflect.Type) string {
	t = pointedTo(t)
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "JSON"
		}
		return "list of " + o.shape(t.Elem())
	case reflect.Map:
		return "object of " + o.shape(t.Elem())
	case reflect.Struct:
		if jsonKind(t) == "string" {
			return "string"
		}
		if !slices.Contains(o.types, t) {
			o.types = append(o.types, t)
		}
		name := typeName(t)
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	default:
		return map[string]string{"string": "string", "bool": "boolean", "number": "number"}[jsonKind(t)]
	}
}

// typeName names a type on the page, where two packages have a Report.
func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[rebuild.Report]() {
		return "RebuildReport"
	}
	return strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
}

// doc is the comment of a field, in the source of its type.
func (o *outputs) doc(f field) string {
	const module = "github.com/radome-io/fleeting-plugin-openstack/"
	path, ours := strings.CutPrefix(f.owner.PkgPath(), module)
	if f.owner.PkgPath() == "main" || strings.HasSuffix(path, "cmd/fleeting-plugin") {
		path, ours = "cmd/fleeting-plugin", true
	}
	if !ours {
		return ""
	}
	if o.docs[path] == nil {
		o.docs[path] = fieldComments(o.t, filepath.Join("../..", path))
	}
	return o.docs[path][f.owner.Name()+"."+f.goName]
}

// fieldComments reads the comments of all fields in a folder.
func fieldComments(t *testing.T, dir string) map[string]string {
	t.Helper()
	comments := map[string]string{}
	set := token.NewFileSet()
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range structure.Fields.List {
				text := f.Doc.Text() + f.Comment.Text()
				for _, name := range f.Names {
					comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
				}
			}
			return true
		})
	}
	return comments
}

const outputHead = `# Output for programs

<!-- Written by ` + "`make docs`" + `; do not edit. -->

With ` + "`--output json`" + ` every command writes for programs:

- **Standard output** has the result: one JSON value, and nothing else. It is empty if the command failed before it had a result. A command that did a part of its work writes the result of that part.
- **Standard error** has one JSON object in each line: one for each warning, one for the error, and with ` + "`--verbose`" + ` one for each debug record. Progress and remarks for people are left out.
- **The exit code** is the same as for people: [exit codes](exit-codes.md).

Fields are added in later versions. They are not renamed or removed. A field that is marked *optional* is omitted if it is empty. Characters that a terminal would obey are written as escapes.

## Warnings and errors

| field | type | |
| --- | --- | --- |
| ` + "`warning`" + ` | string | in a warning: what to know, although the command goes on |
| ` + "`error`" + ` | string | in an error: what failed, in one or more sentences |
| ` + "`hint`" + ` | string | in an error, optional: what to try next, often a command |
| ` + "`code`" + ` | number | in an error: the exit code |
| ` + "`errors`" + ` | list of errors | in an error, optional: if several things failed independently of each other, each with its own hint and code |

` + "```console" + `
$ fleeting-plugin resolve registry.example.com/team/plugin:9 --output json
{"error":"resolving registry.example.com/team/plugin:9: no version satisfies the constraint \"9\": published is 1.0.0","hint":"choose one of the published versions","code":4}
` + "```" + `

## Results

| command | standard output |
| --- | --- |
`

// documented are the results of commands that write documents of other formats.
func documented() map[string]string {
	return map[string]string{
		"completion": "the script of the shell, whatever `--output` says",
		"licenses":   "the texts of licences, whatever `--output` says",
		"man":        "the manual page, whatever `--output` says",
		"help":       "the help text, whatever `--output` says",
		"sbom":       "the document, in the format that `--format` names",
		"login":      "object with `registry` and `username`",
		"logout":     "object with `registry`",
	}
}

func (o *outputs) page() string {
	o.b.WriteString(outputHead)
	all := results()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&o.b, "| `%s` | %s |\n", name, o.result(name, all[name]))
	}
	o.b.WriteString("\n## Objects\n\nVersions, references, digests and times (RFC 3339) are strings.\n")
	for i := 0; i < len(o.types); i++ {
		t := o.types[i]
		fmt.Fprintf(&o.b, "\n### %s\n\n| field | type | |\n| --- | --- | --- |\n", typeName(t))
		for _, f := range fieldsOf(t) {
			kind := o.shape(f.typ)
			if f.optional {
				kind += ", optional"
			}
			fmt.Fprintf(&o.b, "| `%s` | %s | %s |\n", f.name, kind, strings.ReplaceAll(o.doc(f), "|", `\|`))
		}
	}
	return o.b.String()
}

func (o *outputs) result(name string, result any) string {
	if text := documented()[name]; text != "" {
		return text
	}
	switch result := result.(type) {
	case []any:
		first, second := "with REF", "with PATH or `--installed`"
		if name == "policy check" {
			first, second = "without `--for`", "with `--for`"
		}
		return first + ": " + o.shape(reflect.TypeOf(result[0])) + "; " + second + ": " + o.shape(reflect.TypeOf(result[1]))
	case map[string]string:
		return "object with `file`"
	case map[string]installer.Installed:
		return "object with `removed` and `left`, each " + o.shape(reflect.TypeFor[installer.Installed]())
	}
	return o.shape(reflect.TypeOf(result))
}

func TestOutputPageIsFresh(t *testing.T) {
	t.Parallel()
	got := (&outputs{docs: map[string]map[string]string{}, t: t}).page()
	if *update {
		if err := os.WriteFile(outputPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(outputPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale, run make docs (-page +types):\n%s", outputPage, diff)
	}
}
