package plugin

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

// ParseConfig reads a configuration, the JSON form of plugin_config, and
// checks all that can be checked without a cloud. A key that does not exist
// is refused. The error is a [ConfigError] with every mistake.
func ParseConfig(raw []byte) (Config, error) {
	var (
		config Config
		found  problems
	)
	config.setNumberDefaults()
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && !bytes.Equal(trimmed, []byte("null")) {
		decodeSection("", raw, reflect.ValueOf(&config).Elem(), &found)
	}
	config.setTextDefaults()
	config.validate(&found)
	return config, found.err()
}

// UnmarshalJSON reads a configuration as [ParseConfig] does.
func (c *Config) UnmarshalJSON(raw []byte) error {
	parsed, err := ParseConfig(raw)
	*c = parsed
	return err
}

// decodeSection decodes one JSON object into a struct key by key, so that one
// mistake does not hide the next.
func decodeSection(prefix string, raw []byte, into reflect.Value, found *problems) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		found.add(strings.TrimSuffix(prefix, "."), "must be a section with keys, not %s", kindOfJSON(raw))
		return
	}
	fields := fieldsOf(into)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		field, ok := fields[key]
		if !ok {
			unknownKey(prefix+key, key, fields, found)
			continue
		}
		decodeValue(prefix+key, values[key], field, found)
	}
}

func decodeValue(key string, raw []byte, field reflect.Value, found *problems) {
	if field.Kind() == reflect.Struct {
		decodeSection(key+".", raw, field, found)
		return
	}
	err := json.Unmarshal(raw, field.Addr().Interface())
	if err == nil {
		return
	}
	if _, ours := reflect.TypeAssert[Duration](field); ours {
		found.add(key, "%s", err.Error())
		return
	}
	found.add(key, "must be %s, not %s", describe(field.Type()), kindOfJSON(raw))
}

func unknownKey(full, key string, fields map[string]reflect.Value, found *problems) {
	known := slices.Sorted(maps.Keys(fields))
	for _, section := range known {
		if field := fields[section]; field.Kind() == reflect.Struct && fieldsOf(field)[key].IsValid() {
			found.add(full, "belongs into the section %s", section)
			return
		}
	}
	if near := nearest.To(key, known, 1); len(near) == 1 {
		prefix := strings.TrimSuffix(full, key)
		found.add(full, "is no setting; did you mean %s%s?", prefix, near[0])
		return
	}
	found.add(full, "is no setting; these are: %s", strings.Join(known, ", "))
}

// fieldsOf maps the JSON names of a struct to its fields.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("json"); name != "" {
			fields[name] = v.Field(i)
		}
	}
	return fields
}

// configKeys are the settings and sections of plugin_config.
func configKeys() []string {
	return slices.Sorted(maps.Keys(fieldsOf(reflect.ValueOf(Config{}))))
}

// describe names a type for people.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Map:
		return "a section of strings"
	default:
		return "a " + t.String()
	}
}

// kindOfJSON names what was given, without its value: it may be a secret.
func kindOfJSON(raw []byte) string {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0:
		return "nothing"
	case trimmed[0] == '"':
		return "a string"
	case trimmed[0] == '{':
		return "a section"
	case trimmed[0] == '[':
		return "a list"
	case trimmed[0] == 't' || trimmed[0] == 'f':
		return "true or false"
	case trimmed[0] == 'n':
		return "null"
	default:
		return "a number"
	}
}
