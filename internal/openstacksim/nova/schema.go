package nova

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// invalid is how Nova says that a value does not fit its schema.
func invalid(field, value, problem string) error {
	return cloud.BadRequest("Invalid input for field/attribute %s. Value: %s. %s", field, value, problem)
}

// parseCreate reads the body of a create and checks it as Nova's schema does.
func parseCreate(c *cloud.Call) (serverRequest, hints, error) {
	var envelope struct {
		Server   json.RawMessage `json:"server"`
		Hints    hints           `json:"os:scheduler_hints"`
		OldHints hints           `json:"OS-SCH-HNT:scheduler_hints"`
	}
	var request serverRequest
	if err := c.Decode(&envelope); err != nil {
		return request, hints{}, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(envelope.Server, &fields); err != nil {
		return request, hints{}, cloud.BadRequest("'server' is a required property")
	}
	if c.Legacy { // which drops what it does not know
		maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return createFields()[name] != 1 })
		envelope.Server, _ = json.Marshal(fields) //nolint:errchkjson // it was read from JSON
	}
	if err := checkFields(c, envelope.Server, fields); err != nil {
		return request, hints{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(envelope.Server))
	if err := decoder.Decode(&request); err != nil {
		return request, hints{}, invalid("server", pyRepr(envelope.Server), err.Error())
	}
	hint := envelope.Hints
	if hint.Group == "" {
		hint = envelope.OldHints
	}
	return request, hint, checkValues(request)
}

// createFields are those of a create, with the microversion that each came with.
func createFields() map[string]int {
	return map[string]int{
		"name": 1, "flavorRef": 1, "imageRef": 1, "networks": 1, "key_name": 1, "security_groups": 1, "config_drive": 1,
		"user_data": 1, "metadata": 1, "block_device_mapping": 1, "block_device_mapping_v2": 1, "availability_zone": 1,
		"min_count": 1, "max_count": 1, "return_reservation_id": 1, "OS-DCF:diskConfig": 1, "adminPass": 1,
		"accessIPv4": 1, "accessIPv6": 1, "description": 19, "tags": 52, "trusted_image_certificates": 63,
		"host": 74, "hypervisor_hostname": 74, "hostname": 90,
	}
}

// checkFields refuses unknown and missing fields, by microversion.
func checkFields(c *cloud.Call, raw json.RawMessage, fields map[string]json.RawMessage) error {
	since := createFields()
	for _, name := range []string{"name", "flavorRef"} {
		if fields[name] == nil {
			return invalid("server", pyRepr(raw), fmt.Sprintf("'%s' is a required property", name))
		}
	}
	if fields["networks"] == nil && c.AtLeast(37) {
		return invalid("server", pyRepr(raw), "'networks' is a required property")
	}
	for name := range fields {
		if first, known := since[name]; !known || !c.AtLeast(first) {
			return invalid("server", pyRepr(raw), fmt.Sprintf("Additional properties are not allowed ('%s' was unexpected)", name))
		}
	}
	return checkDevices(c, fields["block_device_mapping_v2"])
}

func checkDevices(c *cloud.Call, raw json.RawMessage) error {
	var devices []json.RawMessage
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &devices); err != nil {
		return invalid("block_device_mapping_v2", pyRepr(raw), pyRepr(raw)+" is not of type 'array'")
	}
	for i, device := range devices {
		if strings.Contains(string(device), `"volume_type"`) && !c.AtLeast(67) {
			return invalid(strconv.Itoa(i), pyRepr(device), "Additional properties are not allowed ('volume_type' was unexpected)")
		}
	}
	return nil
}

// Limits of Nova's schemas.
const (
	maxName     = 255
	maxValue    = 255
	maxTags     = 50
	maxTag      = 60
	maxUserData = 65535
)

func checkValues(r serverRequest) error {
	if err := checkLength("name", r.Name, 1, maxName); err != nil {
		return err
	}
	if err := checkLength("user_data", r.UserData, 0, maxUserData); err != nil {
		return err
	}
	if err := checkMetadata(r.Metadata); err != nil {
		return err
	}
	return checkTags(r.Tags)
}

func checkMetadata(metadata map[string]string) error {
	key := regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)
	for name, value := range metadata {
		if !key.MatchString(name) {
			return invalid("metadata", name, fmt.Sprintf("'%s' does not match any of the regexes: '^[a-zA-Z0-9-_:. ]{1,255}$'", name))
		}
		if err := checkLength(name, value, 0, maxValue); err != nil {
			return err
		}
	}
	return nil
}

func checkTags(tags []string) error {
	if len(tags) > maxTags {
		raw, err := json.Marshal(tags)
		if err != nil {
			return err
		}
		return invalid("tags", pyRepr(raw), pyRepr(raw)+" is too long")
	}
	for i, tag := range tags {
		if err := checkLength(strconv.Itoa(i), tag, 1, maxTag); err != nil {
			return err
		}
		if strings.ContainsAny(tag, ",/") {
			return invalid(strconv.Itoa(i), tag, fmt.Sprintf("'%s' does not match '^[^,/]*$'", tag))
		}
	}
	return nil
}

func checkLength(field, value string, least, most int) error {
	switch n := utf8.RuneCountInString(value); {
	case n < least:
		return invalid(field, value, fmt.Sprintf("'%s' is too short", value))
	case n > most:
		return invalid(field, value, fmt.Sprintf("'%s' is too long", value))
	default:
		return nil
	}
}

// pyRepr writes JSON the way Python prints it, for refusals that quote the request.
func pyRepr(raw []byte) string {
	token := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\s+|[,:]|true|false|null`)
	words := map[string]string{",": ", ", ":": ": ", "true": "True", "false": "False", "null": "None"}
	return token.ReplaceAllStringFunc(string(raw), func(found string) string {
		var text string
		if json.Unmarshal([]byte(found), &text) == nil && found[0] == '"' {
			return "'" + strings.ReplaceAll(text, "'", `\'`) + "'"
		}
		return words[found] // none for space
	})
}

func dedupe(tags []string) []string {
	var unique []string
	for _, tag := range tags {
		if !slices.Contains(unique, tag) {
			unique = append(unique, tag)
		}
	}
	return unique
}

// parseBool reads a boolean as Nova takes it: bare or in words.
func parseBool(raw json.RawMessage) (bool, error) {
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "", "null", "false", "f", "no", "off", "0":
		return false, nil
	case "true", "t", "yes", "on", "1":
		return true, nil
	default:
		return false, cloud.BadRequest("Invalid input for field/attribute config_drive. Value: %s.", raw)
	}
}
