//go:build rehearsal

package rehearsal_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// github is what gh needs of GitHub to show a release.
// https://docs.github.com/en/rest/releases
type github struct {
	hosts *hosts
	tags  []string

	mutex    sync.Mutex
	releases []*shownRelease
	latest   string
	assets   int
}

type shownRelease struct {
	ID         int          `json:"id"`
	Tag        string       `json:"tag_name"`
	Name       string       `json:"name"`
	Body       string       `json:"body"`
	Draft      bool         `json:"draft"`
	Prerelease bool         `json:"prerelease"`
	URL        string       `json:"url"`
	Upload     string       `json:"upload_url"`
	HTML       string       `json:"html_url"`
	Assets     []shownAsset `json:"assets"`
}

type shownAsset struct {
	ID    int    `json:"id"`
	Name  string `json:"name"`
	URL   string `json:"url"`
	Size  int    `json:"size"`
	State string `json:"state"`

	content []byte
}

const (
	apiHost     = "api.github.com"
	uploadsHost = "uploads.github.com"
	repoPath    = "/repos/" + ourRepository
)

// ServeHTTP answers for both hosts.
func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "token ")
	write := r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != "/graphql"
	switch {
	case write && !g.hosts.may(token, "contents", "write"):
		answer(w, http.StatusForbidden, map[string]string{"message": "Resource not accessible by integration"})
	case r.URL.Path == "/graphql":
		g.query(w, r)
	case strings.HasPrefix(r.URL.Path, repoPath+"/releases"):
		g.rest(w, r, strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, repoPath+"/releases"), "/"), "/"))
	default:
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
	}
}

// query answers the two questions of gh that REST has no answer for.
func (g *github) query(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Query     string            `json:"query"`
		Variables map[string]string `json:"variables"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"message": err.Error()})
		return
	}
	repository := map[string]any{}
	switch {
	case strings.Contains(q.Query, "release(tagName"):
		repository["release"] = nil
		if found := g.find(func(s *shownRelease) bool { return s.Tag == q.Variables["tagName"] }); found != nil {
			repository["release"] = map[string]any{"databaseId": found.ID, "isDraft": found.Draft}
		}
	case strings.Contains(q.Query, "ref(qualifiedName"):
		repository["ref"] = nil
		if slices.Contains(g.tags, strings.TrimPrefix(q.Variables["tagName"], "refs/tags/")) {
			repository["ref"] = map[string]string{"id": "REF"}
		}
	default:
		answer(w, http.StatusBadRequest, map[string]string{"message": "unknown query: " + q.Query})
		return
	}
	answer(w, http.StatusOK, map[string]any{"data": map[string]any{"repository": repository}})
}

func (g *github) find(is func(s *shownRelease) bool) *shownRelease {
	if i := slices.IndexFunc(g.releases, is); i >= 0 {
		return g.releases[i]
	}
	return nil
}

// rest answers below /releases.
func (g *github) rest(w http.ResponseWriter, r *http.Request, path []string) {
	number := 0
	if len(path) > 0 {
		number, _ = strconv.Atoi(path[len(path)-1])
	}
	byID := g.find(func(s *shownRelease) bool { return s.ID == number })
	switch {
	case r.Method == http.MethodPost && path[0] == "":
		s := &shownRelease{ID: len(g.releases) + 1, Assets: []shownAsset{}}
		s.URL = fmt.Sprintf("https://%s%s/releases/%d", apiHost, repoPath, s.ID)
		s.Upload = fmt.Sprintf("https://%s%s/releases/%d/assets{?name,label}", uploadsHost, repoPath, s.ID)
		s.HTML = "https://github.com/" + ourRepository + "/releases/" + strconv.Itoa(s.ID)
		if g.change(w, r, s) {
			g.releases = append(g.releases, s)
			answer(w, http.StatusCreated, s)
		}
	case len(path) == 2 && path[0] == "tags":
		if s := g.find(func(s *shownRelease) bool { return s.Tag == path[1] && !s.Draft }); s != nil {
			answer(w, http.StatusOK, s)
			return
		}
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
	case len(path) == 2 && path[0] == "assets":
		g.asset(w, r, number)
	case len(path) == 2 && path[1] == "assets" && r.Method == http.MethodPost:
		g.upload(w, r, path[0])
	case len(path) == 1 && byID != nil && r.Method == http.MethodPatch:
		if g.change(w, r, byID) {
			answer(w, http.StatusOK, byID)
		}
	case len(path) == 1 && byID != nil && r.Method == http.MethodGet:
		answer(w, http.StatusOK, byID)
	default:
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
	}
}

// change takes over what a request says.
func (g *github) change(w http.ResponseWriter, r *http.Request, s *shownRelease) bool {
	was := s.Tag != "" && !s.Draft
	var latest struct {
		Make string `json:"make_latest"`
	}
	content, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(content, s)
	}
	if err == nil {
		err = json.Unmarshal(content, &latest)
	}
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, map[string]string{"message": err.Error()})
		return false
	}
	if !s.Draft && !was && latest.Make != "false" && !s.Prerelease {
		g.latest = s.Tag
	}
	return true
}

func (g *github) upload(w http.ResponseWriter, r *http.Request, release string) {
	s := g.find(func(s *shownRelease) bool { return strconv.Itoa(s.ID) == release })
	content, err := io.ReadAll(r.Body)
	name := r.URL.Query().Get("name")
	if s == nil || err != nil || slices.ContainsFunc(s.Assets, func(a shownAsset) bool { return a.Name == name }) {
		answer(w, http.StatusUnprocessableEntity, map[string]string{"message": "already_exists"})
		return
	}
	g.assets++
	a := shownAsset{ID: g.assets, Name: name, Size: len(content), State: "uploaded", content: content}
	a.URL = fmt.Sprintf("https://%s%s/releases/assets/%d", apiHost, repoPath, a.ID)
	s.Assets = append(s.Assets, a)
	answer(w, http.StatusCreated, a)
}

func (g *github) asset(w http.ResponseWriter, r *http.Request, id int) {
	for _, s := range g.releases {
		i := slices.IndexFunc(s.Assets, func(a shownAsset) bool { return a.ID == id })
		switch {
		case i < 0:
			continue
		case r.Method == http.MethodDelete:
			s.Assets = slices.Delete(s.Assets, i, i+1)
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(s.Assets[i].content)
		}
		return
	}
	answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

// state is what is shown: the names and sizes of files, by tag.
func (g *github) state() map[string]string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	state := map[string]string{"latest": g.latest}
	for i, s := range g.releases {
		files := map[string]int{}
		for _, a := range s.Assets {
			files[a.Name] = a.Size
		}
		key := fmt.Sprintf("%d %s draft=%t prerelease=%t", i, s.Tag, s.Draft, s.Prerelease)
		state[key] = strings.Join(slices.Sorted(maps.Keys(files)), " ")
	}
	return state
}

// forget removes every release, and returns the tag of the latest.
func (g *github) forget() string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	latest := g.latest
	g.releases, g.latest = nil, ""
	return latest
}
