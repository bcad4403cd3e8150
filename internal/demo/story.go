package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// story tells on a writer what happens: steps with their times, and every
// command as a reader would type it.
type story struct {
	out   io.Writer
	now   func() time.Time
	short []string // pairs for a strings.Replacer: long paths and what to show
	steps []finished
	mu    sync.Mutex // for out, while a step runs
}

// finished is a step that is over.
type finished struct {
	title string
	took  time.Duration
}

// step runs f under a title and says how long it took.
func (s *story) step(title string, f func() error) error {
	fmt.Fprintf(s.out, "\n%d. %s\n", len(s.steps)+1, title)
	start := s.now()
	err := f()
	took := s.now().Sub(start)
	s.steps = append(s.steps, finished{title, took})
	if err != nil {
		return fmt.Errorf("%s: %w", strings.ToLower(title[:1])+title[1:], err)
	}
	fmt.Fprintf(s.out, "   (%s)\n", rounded(took))
	return nil
}

// say writes lines of a step.
func (s *story) say(format string, args ...any) {
	s.indented(fmt.Sprintf(format, args...))
}

func (s *story) indented(text string) {
	text = strings.NewReplacer(s.short...).Replace(strings.TrimRight(text, "\n"))
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(s.out, "   %s\n", line)
	}
}

// Write lets others write lines into the story.
func (s *story) Write(p []byte) (int, error) {
	s.indented(string(p))
	return len(p), nil
}

// shorten shows path as name from now on.
func (s *story) shorten(path, name string) { s.short = append(s.short, path, name) }

// command is a program to run, with its surroundings.
type command struct {
	program string
	args    []string
	env     []string
	dir     string
}

// run shows a command, runs it, shows and returns its standard output. The
// error has what the program wrote to standard error.
func (s *story) run(ctx context.Context, c command) (string, error) {
	s.say("$ %s %s", filepath.Base(c.program), quoted(c.args))
	cmd := exec.CommandContext(ctx, c.program, c.args...) //nolint:gosec // the programs of this demo
	cmd.Env = c.env
	cmd.Dir = c.dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	s.indented(stderr.String())
	s.indented(stdout.String())
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(c.program), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// refused runs a command that has to end with the given exit code.
func (s *story) refused(ctx context.Context, c command, code int) error {
	_, err := s.run(ctx, c)
	if err == nil {
		return fmt.Errorf("%s %s: succeeded, and should have been refused", filepath.Base(c.program), quoted(c.args))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != code {
		return fmt.Errorf("exit code %d expected: %w", code, err)
	}
	s.say("refused, with exit code %d, as it should be", code)
	return nil
}

// summary lists the steps with their times.
func (s *story) summary() {
	var total time.Duration
	fmt.Fprintln(s.out, "\nWhat happened:")
	for i, step := range s.steps {
		fmt.Fprintf(s.out, "  %2d. %-60s %8s\n", i+1, step.title, rounded(step.took))
		total += step.took
	}
	fmt.Fprintf(s.out, "      %-60s %8s\n", "all of it", rounded(total))
}

func rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// quoted joins arguments so that a shell would take them apart again.
func quoted(args []string) string {
	shown := make([]string, len(args))
	for i, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"$&|;<>()*?") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		shown[i] = arg
	}
	return strings.Join(shown, " ")
}
