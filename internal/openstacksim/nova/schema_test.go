package nova

import "testing"

// TestPythonPrintsJSON: refusals quote a request as Python prints it.
func TestPythonPrintsJSON(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"a":1,"b":[true,false,null]}`:     `{'a': 1, 'b': [True, False, None]}`,
		"{ \"a\" : 1.50 ,\n\"b\":\"\" }":    `{'a': 1.50, 'b': ''}`,
		`["it's, true: \"so\" \u00e9"]`:     `['it\'s, true: "so" é']`,
		`{"true":"null","x":{"y":[[],{}]}}`: `{'true': 'null', 'x': {'y': [[], {}]}}`,
	} {
		if got := pyRepr([]byte(input)); got != want {
			t.Errorf("%s: got %s, want %s", input, got, want)
		}
	}
}
