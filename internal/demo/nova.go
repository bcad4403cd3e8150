package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// observer looks at the cloud on its own, past the plugin: it asks Keystone for
// a token and Nova for the servers, as curl would.
type observer struct {
	client         *http.Client
	keystone, nova string
	token          string
}

// server is what Nova says of a server.
type server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// observe logs in with the simulator's clouds.yaml.
func observe(ctx context.Context, dir, cloud string) (*observer, error) {
	content, err := os.ReadFile(filepath.Join(dir, "clouds.yaml"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Clouds map[string]struct {
			Auth struct {
				URL      string `yaml:"auth_url"`
				Username string `yaml:"username"`
				Password string `yaml:"password"`
				Project  string `yaml:"project_name"`
			} `yaml:"auth"`
		} `yaml:"clouds"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	auth := file.Clouds[cloud].Auth
	domain := map[string]any{"name": "Default"}
	body, err := json.Marshal(map[string]any{"auth": map[string]any{
		"identity": map[string]any{
			"methods":  []string{"password"},
			"password": map[string]any{"user": map[string]any{"name": auth.Username, "password": auth.Password, "domain": domain}},
		},
		"scope": map[string]any{"project": map[string]any{"name": auth.Project, "domain": domain}},
	}})
	if err != nil {
		return nil, err
	}
	o := &observer{client: &http.Client{Timeout: 10 * time.Second}, keystone: auth.URL}
	return o, o.login(ctx, auth.URL+"/auth/tokens", body)
}

func (o *observer) login(ctx context.Context, url string, body []byte) error {
	var answer struct {
		Token struct {
			Catalog []struct {
				Type      string `json:"type"`
				Endpoints []struct {
					Interface string `json:"interface"`
					URL       string `json:"url"`
				} `json:"endpoints"`
			} `json:"catalog"`
		} `json:"token"`
	}
	header, err := o.call(ctx, http.MethodPost, url, body, &answer)
	if err != nil {
		return err
	}
	o.token = header.Get("X-Subject-Token")
	for _, service := range answer.Token.Catalog {
		for _, endpoint := range service.Endpoints {
			if service.Type == "compute" && endpoint.Interface == "public" {
				o.nova = endpoint.URL
			}
		}
	}
	if o.nova == "" {
		return errors.New("the cloud's catalogue has no compute service")
	}
	return nil
}

// servers lists the servers of the project, sorted by name.
func (o *observer) servers(ctx context.Context) ([]server, error) {
	var answer struct {
		Servers []server `json:"servers"`
	}
	if _, err := o.call(ctx, http.MethodGet, o.nova+"/servers/detail", nil, &answer); err != nil {
		return nil, err
	}
	slices.SortFunc(answer.Servers, func(a, b server) int { return strings.Compare(a.Name, b.Name) })
	return answer.Servers, nil
}

func (o *observer) call(ctx context.Context, method, url string, body []byte, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", o.token)
	response, err := o.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	const limit = 1 << 20
	content, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, response.Status, content)
	}
	return response.Header, json.Unmarshal(content, into)
}

// watch reports each server whose status changed, until it gets to see a state
// of the cloud for which done is true.
func (o *observer) watch(ctx context.Context, report func(server), done func([]server) bool) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	known := map[string]string{}
	for {
		list, err := o.servers(ctx)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, s := range list {
			seen[s.Name] = true
			if known[s.Name] != s.Status {
				known[s.Name] = s.Status
				report(s)
			}
		}
		for name := range known {
			if !seen[name] {
				delete(known, name)
				report(server{Name: name, Status: "gone"})
			}
		}
		if done(list) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
