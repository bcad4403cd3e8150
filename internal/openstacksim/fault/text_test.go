package fault_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// TestTextThatCannotBeRead: the message names the thing and the remedy.
func TestTextThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for input, says := range map[string]string{
		"":                                      "write KIND",
		"eror":                                  "did you mean error?",
		"error:0":                               "share above 0",
		"error:110%":                            "share above 0",
		"error:lots":                            `rate "lots"`,
		"error,staus=500":                       "did you mean status?",
		"error,status":                          "SETTING=VALUE",
		"error,status=200":                      "from 400 to 599",
		"error,status=500,status=500":           "given twice",
		"error,match=compute:server.mak":        `did you mean compute:server.`,
		"error,match=image:*,match=compute:*":   "write two faults",
		"build-error,match=host:a,match=host:b": "write two faults",
		"build-error,match=project:a,match=project:b": "write two faults",
		"delay":                       "by is required",
		"delay,by=5":                  "with a unit",
		"delay,by=-5s":                "above 0",
		"lost,answer=nothing":         "400 to 599",
		"build-error,match=hosts:a":   "fields are host, project, flavor, name, tag",
		"build-error,match=name:[":    "syntax error",
		"build-error,times=none":      "whole number",
		"quota":                       "set one of instances",
		"quota,instances=-2":          "no limit",
		"quota:50%,instances=2":       "takes no rate",
		"cell-down,match=project:a":   "takes no match",
		"cell-down,times=1":           "unknown setting",
		"cell-down,match=compute:*":   "takes no match",
		"rate-limit,calls=0":          "above 0",
		"delete-error,deletions=some": "whole number",
	} {
		_, err := fault.Parse(input)
		if !errors.Is(err, fault.ErrText) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", input, err, says)
		}
	}
}
