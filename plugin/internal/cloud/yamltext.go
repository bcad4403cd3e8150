package cloud

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlNodes bounds how much a file may hold, once its aliases are followed:
// they may multiply each other, or lead back to themselves.
const yamlNodes = 10_000

var (
	errYAMLSection = errors.New("is no section")
	errYAMLSize    = errors.New("holds too much, or aliases that lead back to themselves")
)

// yamlText reads one document, of which left nodes may still come.
type yamlText struct{ left int }

// value turns YAML into maps, lists, booleans and text. Numbers stay the text
// that was written: a project ID of digits, a region "1.10" and a password
// with leading zeros are no numbers.
func (y *yamlText) value(node *yaml.Node) (any, error) {
	if y.left--; y.left < 0 {
		return nil, fmt.Errorf("line %d %w", node.Line, errYAMLSize)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return y.value(node.Alias)
	case yaml.MappingNode:
		return y.section(node)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, element := range node.Content {
			value, err := y.value(element)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.ScalarNode, yaml.DocumentNode:
	}
	switch node.ShortTag() {
	case "!!null":
		return nil, nil //nolint:nilnil // null is a value
	case "!!bool":
		var flag bool
		err := node.Decode(&flag)
		return flag, err
	default:
		return node.Value, nil
	}
}

// section turns a mapping into a map, with what it merges in ("<<") below its
// own keys.
func (y *yamlText) section(node *yaml.Node) (map[string]any, error) {
	merged, own := map[string]any{}, map[string]any{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, content := node.Content[i], node.Content[i+1]
		value, err := y.value(content)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() != "!!merge" {
			own[key.Value] = value
			continue
		}
		bases, isList := value.([]any)
		if !isList {
			bases = []any{value}
		}
		for _, item := range slices.Backward(bases) { // the first one wins
			base, isMap := item.(map[string]any)
			if !isMap {
				return nil, fmt.Errorf("line %d %w", key.Line, errYAMLSection)
			}
			maps.Copy(merged, base)
		}
	}
	maps.Copy(merged, own)
	return merged, nil
}

// yamlLine is how the library's errors name a place.
var yamlLine = regexp.MustCompile(`line \d+`)

// withoutValues keeps the place of a YAML error and drops what it quotes,
// which may be a password.
func withoutValues(err error) error {
	text := err.Error()
	if errors.Is(err, errYAMLSection) || errors.Is(err, errYAMLSize) {
		return err
	}
	at := ""
	if places := yamlLine.FindAllString(text, -1); len(places) > 0 {
		at = " at " + strings.Join(places, ", ")
	}
	var types *yaml.TypeError
	switch {
	case errors.As(err, &types):
		return errors.New("values of the wrong type" + at)
	case strings.Contains(text, "anchor"):
		return errors.New("it is not valid YAML: a value that begins with * or & has to stand in quotes")
	default:
		return errors.New("it is not valid YAML" + at)
	}
}
