//go:build e2e

package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// gitlab stands in for GitLab: it hands out jobs to one runner by GitLab's API,
// keeps what the runner says of them, and refuses what it does not know, which
// fails the test.
type gitlab struct {
	url string

	mu   sync.Mutex
	jobs []*job
	// tokens are those of the runner that are good.
	tokens []string
}

// job is what GitLab knows of a job. Its fields are gitlab's.
type job struct {
	name   string
	id     int
	script []string

	state, reason string // state is empty until a runner has the job
	exitCode      int
	trace         []byte
	canceled      bool

	taken, begun, over time.Time
}

const (
	runnerToken = "glrt-e2e0123456789abcdef"
	// begins is what the script of a job writes first if its beginning is measured.
	begins = " begins\n"
	// traceLimit is far above what our jobs write.
	traceLimit = 1 << 20
)

func newGitLab(t *testing.T) *gitlab {
	t.Helper()
	g := &gitlab{tokens: []string{runnerToken}}
	mux := http.NewServeMux()
	handle := func(pattern string, do func(http.ResponseWriter, *http.Request) (int, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			g.mu.Lock()
			defer g.mu.Unlock()
			code, err := do(w, r)
			if err != nil {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
				http.Error(w, err.Error(), code)
			}
		})
	}
	handle("POST /api/v4/jobs/request", g.request)
	handle("PUT /api/v4/jobs/{id}", g.update)
	handle("PATCH /api/v4/jobs/{id}/trace", g.append)
	handle("/", func(http.ResponseWriter, *http.Request) (int, error) {
		return http.StatusNotFound, fmt.Errorf("the runner asks for what this GitLab has not")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// add puts a job into the queue.
func (g *gitlab) add(name string, script ...string) *job {
	g.mu.Lock()
	defer g.mu.Unlock()
	j := &job{name: name, id: len(g.jobs) + 1, script: script}
	g.jobs = append(g.jobs, j)
	return j
}

// accept lets the runner come with another token, too.
func (g *gitlab) accept(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens = append(g.tokens, token)
}

// cancel has the runner told, the next time that it asks.
func (g *gitlab) cancel(j *job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	j.canceled = true
}

// look is a copy of what there is to know of a job.
func (g *gitlab) look(j *job) job {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := *j
	seen.trace = slices.Clone(j.trace)
	return seen
}

// wrote tells whether a job's trace has a text.
func (g *gitlab) wrote(j *job, text string) bool {
	return strings.Contains(string(g.look(j).trace), text)
}

// awaitWrote waits until a job's trace has a text.
func (g *gitlab) awaitWrote(t *testing.T, j *job, text string) {
	t.Helper()
	await(t, fmt.Sprintf("%q in the trace of job %s", text, j.name), func() bool { return g.wrote(j, text) })
}

// awaitEnd waits until the runner has said how a job ended.
func (g *gitlab) awaitEnd(t *testing.T, j *job) job {
	t.Helper()
	await(t, "end of job "+j.name, func() bool { return ended(g.look(j).state) })
	return g.look(j)
}

// awaitSuccess waits until jobs have ended, each as it should.
func (g *gitlab) awaitSuccess(t *testing.T, jobs ...*job) {
	t.Helper()
	for _, j := range jobs {
		if ended := g.awaitEnd(t, j); ended.state != "success" {
			t.Errorf("job %s: %s:\n%s", j.name, ended.verdict(), ended.trace)
		}
	}
}

func ended(state string) bool { return state == "success" || state == "failed" }

// request is POST /jobs/request: the next job, if there is one.
func (g *gitlab) request(w http.ResponseWriter, r *http.Request) (int, error) {
	var asked struct {
		Token string
		Info  struct{ Executor, Shell string }
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, traceLimit)).Decode(&asked); err != nil {
		return http.StatusBadRequest, err
	}
	if !slices.Contains(g.tokens, asked.Token) || asked.Info.Executor != "instance" {
		return http.StatusForbidden, fmt.Errorf("not our runner: %+v", asked)
	}
	at := slices.IndexFunc(g.jobs, func(j *job) bool { return j.state == "" })
	if at < 0 {
		w.WriteHeader(http.StatusNoContent)
		return 0, nil
	}
	j := g.jobs[at]
	j.state, j.taken = "pending", time.Now()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return http.StatusInternalServerError, json.NewEncoder(w).Encode(j.payload(g.url))
}

// payload is what GitLab tells a runner of a job, as far as the runner needs it.
func (j *job) payload(url string) any {
	variables := map[string]string{"GIT_STRATEGY": "none", "CI_JOB_NAME": j.name}
	list := []object{}
	for _, key := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, object{"key": key, "value": variables[key], "public": true})
	}
	return object{
		"id": j.id, "token": j.token(),
		"job_info":    object{"name": j.name, "stage": "test", "project_id": 1, "project_name": "e2e"},
		"git_info":    object{"repo_url": url + "/e2e/e2e.git", "ref": "main", "ref_type": "branch", "sha": strings.Repeat("0", 40)},
		"runner_info": object{"timeout": int(oneStep.Seconds())},
		"variables":   list,
		"steps":       []object{{"name": "script", "script": j.script, "timeout": int(oneStep.Seconds()), "when": "on_success"}},
		"features":    object{"failure_reasons": []string{"script_failure", "runner_system_failure", "job_canceled", "job_execution_timeout"}},
	}
}

func (j *job) token() string { return fmt.Sprintf("job-%d", j.id) }

// known finds the job that a request with a token is about.
func (g *gitlab) known(r *http.Request, token string) (*job, error) {
	for _, j := range g.jobs {
		if fmt.Sprint(j.id) == r.PathValue("id") && j.token() == token {
			return j, nil
		}
	}
	return nil, fmt.Errorf("no such job for the token %q", token)
}

// answer tells the runner that the job is to go on or to end, and to come again
// soon.
func (j *job) answer(w http.ResponseWriter, code int) {
	status := "running"
	if j.canceled {
		status = "canceling"
	}
	w.Header().Set("Job-Status", status)
	w.Header().Set("X-GitLab-Trace-Update-Interval", "1")
	w.WriteHeader(code)
}

// update is PUT /jobs/:id: the job goes on, or has ended.
func (g *gitlab) update(w http.ResponseWriter, r *http.Request) (int, error) {
	var said struct {
		Token         string // of runners before the header for it
		State         string
		FailureReason string `json:"failure_reason"`
		ExitCode      int    `json:"exit_code"`
		Output        struct {
			Checksum string
			Bytesize int
		}
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, traceLimit)).Decode(&said); err != nil {
		return http.StatusBadRequest, err
	}
	j, err := g.known(r, cmp.Or(r.Header.Get("JOB-TOKEN"), said.Token))
	if err != nil {
		return http.StatusForbidden, err
	}
	switch {
	case ended(j.state):
		return http.StatusForbidden, fmt.Errorf("job %s has ended already", j.name)
	case said.State == "running":
		j.state = said.State
	case !ended(said.State):
		return http.StatusBadRequest, fmt.Errorf("no such state %q", said.State)
	default:
		if sum := fmt.Sprintf("crc32:%08x", crc32.ChecksumIEEE(j.trace)); said.Output.Checksum != sum || said.Output.Bytesize != len(j.trace) {
			return http.StatusPreconditionFailed, fmt.Errorf("the trace of job %s is %s of %d bytes, and the runner says %+v", j.name, sum, len(j.trace), said.Output)
		}
		j.state, j.reason, j.exitCode = said.State, said.FailureReason, said.ExitCode
		j.over = time.Now()
	}
	j.answer(w, http.StatusOK)
	return 0, nil
}

// append is PATCH /jobs/:id/trace: more of what the job wrote.
func (g *gitlab) append(w http.ResponseWriter, r *http.Request) (int, error) {
	j, err := g.known(r, r.Header.Get("JOB-TOKEN"))
	if err != nil {
		return http.StatusForbidden, err
	}
	more, err := io.ReadAll(io.LimitReader(r.Body, traceLimit))
	if err != nil {
		return http.StatusBadRequest, err
	}
	if want := fmt.Sprintf("%d-%d", len(j.trace), len(j.trace)+len(more)-1); r.Header.Get("Content-Range") != want {
		return http.StatusRequestedRangeNotSatisfiable, fmt.Errorf("the runner sends %q, want %q", r.Header.Get("Content-Range"), want)
	}
	j.trace = append(bytes.Clone(j.trace), more...)
	if j.begun.IsZero() && bytes.Contains(j.trace, []byte(begins)) {
		j.begun = time.Now()
	}
	w.Header().Set("Range", fmt.Sprintf("0-%d", len(j.trace)))
	j.answer(w, http.StatusAccepted)
	return 0, nil
}
