package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestFaultsChangeWhileItRuns: faults are set, listed and ended by HTTP.
func TestFaultsChangeWhileItRuns(t *testing.T) {
	t.Parallel()
	sim, err := openstacksim.New(openstacksim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := front(sim, faults(sim))
	ask := func(method, path, body string, header ...string) (int, string) {
		request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if len(header) > 0 {
			request.Header.Set(header[0], header[1])
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code, answer.Body.String()
	}
	texts := func(body string) []string {
		var list []openstacksim.Injected
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		all := []string{}
		for _, rule := range list {
			all = append(all, rule.Text)
		}
		return all
	}
	for _, step := range []struct {
		method, path, body string
		code               int
		want               []string
		says               string
	}{
		{http.MethodGet, "/faults", "", 200, []string{}, ""},
		{http.MethodPost, "/faults", "reset,match=compute:*\n\nbuild-error:10%\n", 200, []string{"reset,match=compute:*", "build-error:10%"}, ""},
		{http.MethodPost, "/faults", "hang\neror\n", 400, nil, "did you mean error?"},
		{http.MethodPost, "/faults", "\n", 400, nil, "no fault given"},
		{http.MethodPost, "/faults", strings.Repeat("hang\n", maxFaults), 400, nil, "too large"},
		{http.MethodGet, "/faults", "", 200, []string{"reset,match=compute:*", "build-error:10%"}, ""},
		{http.MethodDelete, "/faults/1", "", 200, []string{"build-error:10%"}, ""},
		{http.MethodDelete, "/faults/1", "", 404, nil, "no fault has the ID 1"},
		{http.MethodPut, "/faults", "hang", 405, nil, ""},
		{http.MethodDelete, "/faults", "", 200, []string{}, ""},
	} {
		code, body := ask(step.method, step.path, step.body)
		if code != step.code || !strings.Contains(body, step.says) {
			t.Errorf("%s %s %.20q: %d, %s", step.method, step.path, step.body, code, body)
		}
		if step.want != nil {
			if diff := cmp.Diff(step.want, texts(body)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", step.method, step.path, diff)
			}
		}
	}
	if code, _ := ask(http.MethodPost, "/faults", "hang", "Origin", "https://example.com"); code != http.StatusForbidden {
		t.Errorf("a web page: %d", code)
	}
	if code, _ := ask(http.MethodGet, "/identity/v3", ""); code != http.StatusOK {
		t.Errorf("the cloud: %d", code)
	}
}
