package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

const (
	// maxRecord bounds what is read of a file in the folder.
	maxRecord = 64 << 10
	// keepRecord is how long the files of a dead process are kept.
	keepRecord = 7 * 24 * time.Hour
	// renewAfter is how often a process touches its files, so that programs that
	// clean temporary folders leave them alone.
	renewAfter = time.Hour

	lockExt, recordExt = ".lock", ".json"
)

// Process describes a process that serves a group.
type Process struct {
	// Generation names the process: random, and never used again.
	Generation string `json:"generation"`
	// Group is what tells its group from all others.
	Group string `json:"group"`
	// Host is the name of the machine or container.
	Host string `json:"host"`
	// PID is the process itself, Runner the one that started it; Space says in
	// which of the machine's process namespaces the two numbers count.
	PID    int    `json:"pid"`
	Runner int    `json:"runner"`
	Space  string `json:"space,omitempty"`
	// Started is when the process joined the group.
	Started time.Time `json:"started"`
}

// String names the process for people.
func (p Process) String() string {
	return fmt.Sprintf("process %d on %s, started %s", p.PID, p.Host, p.Started.UTC().Format(time.RFC3339))
}

// SameRunner tells whether one runner started both processes.
func (p Process) SameRunner(other Process) bool {
	return p.Host == other.Host && p.Space == other.Space && p.Runner == other.Runner
}

// IsSelf reports whether it is the process that asks.
func (p Process) IsSelf() bool { return p.PID == os.Getpid() && p.Space == space() }

// RunnerGone reports whether the process that started this one has ended. It is
// false when that cannot be told.
func (p Process) RunnerGone() bool {
	return p.Runner > 0 && p.Space == space() && ended(p.Runner)
}

// State is what is known of a process.
type State int

// States of a process.
const (
	// Unknown: there is no file of it here.
	Unknown State = iota
	// Alive: it holds its lock.
	Alive
	// Dead: its lock is free.
	Dead
)

// Folder holds the files of the processes of one user on one machine.
type Folder struct{ path string }

// Default is the folder that is used unless another one is set: one for each
// user, which the processes of one runner share. It may be emptied at any time;
// see [Member.Renew].
func Default() string { return defaultIn("fleeting-plugin-openstack") }

// Open opens a folder, created if missing. It refuses one that another user can
// write to or owns: whoever holds a lock there keeps servers from being deleted.
func Open(path string) (Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Folder{}, err
	}
	if err := errors.Join(access.Guarded(path), owned(path)); err != nil {
		return Folder{}, err
	}
	return Folder{path}, nil
}

// Read is Open for those who only look: a folder that is missing is empty.
func Read(path string) (Folder, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return Folder{path}, nil
	}
	return Open(path)
}

func (f Folder) file(generation, ext string) string { return filepath.Join(f.path, generation+ext) }

// Join records a process and takes its lock, and clears away the files of
// processes that ended long ago.
func (f Folder) Join(p Process, now time.Time) (*Member, error) {
	f.sweep(now)
	m := &Member{folder: f, process: p, renewed: now}
	if err := m.take(); err != nil {
		return nil, err
	}
	return m, nil
}

// Look returns what is known of the process of a generation.
func (f Folder) Look(generation string) (Process, State) {
	if !isGeneration(generation) {
		return Process{}, Unknown
	}
	p, err := f.record(generation)
	if err != nil {
		return Process{}, Unknown
	}
	return p, f.probe(generation)
}

// Of returns the processes of a group that are alive.
func (f Folder) Of(group string) ([]Process, error) {
	entries, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var alive []Process
	for _, entry := range entries {
		generation, isRecord := strings.CutSuffix(entry.Name(), recordExt)
		if !isRecord || !isGeneration(generation) {
			continue
		}
		if p, err := f.record(generation); err == nil && p.Group == group && f.probe(generation) == Alive {
			alive = append(alive, p)
		}
	}
	return alive, nil
}

func (f Folder) record(generation string) (Process, error) {
	file, err := os.Open(f.file(generation, recordExt))
	if err != nil {
		return Process{}, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return Process{}, err
	}
	var p Process
	if err := json.Unmarshal(content, &p); err != nil {
		return Process{}, err
	}
	if p.Generation != generation {
		return Process{}, fmt.Errorf("%s describes another process", file.Name())
	}
	return p, nil
}

// probe asks for a shared lock, which other probes do not stand in the way of.
func (f Folder) probe(generation string) State {
	path := f.file(generation, lockExt)
	if _, err := os.Lstat(path); err != nil {
		return Unknown // asking for the lock would create the file
	}
	lock := flock.New(path)
	free, err := lock.TryRLock()
	if err != nil {
		return Unknown
	}
	defer func() { _ = lock.Close() }()
	if free {
		return Dead
	}
	return Alive
}

// sweep removes the files of processes that ended long ago.
func (f Folder) sweep(now time.Time) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return // what follows says why
	}
	for _, entry := range entries {
		generation, _ := strings.CutSuffix(strings.TrimSuffix(entry.Name(), recordExt), lockExt)
		info, err := entry.Info()
		if err != nil || !isGeneration(generation) || now.Sub(info.ModTime()) < keepRecord || f.probe(generation) == Alive {
			continue
		}
		_ = os.Remove(filepath.Join(f.path, entry.Name())) // the next process tries again
	}
}

// Member is a process that has joined. It is not safe for concurrent use.
type Member struct {
	folder  Folder
	process Process
	lock    *flock.Flock
	renewed time.Time
}

func (m *Member) take() error {
	content, err := json.Marshal(m.process)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(m.folder.file(m.process.Generation, recordExt), content, 0o600); err != nil {
		return err
	}
	lock := flock.New(m.folder.file(m.process.Generation, lockExt), flock.SetPermissions(0o600))
	taken, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	if !taken {
		return fmt.Errorf("lock %s: another process holds it", lock.Path())
	}
	if m.lock != nil {
		_ = m.lock.Close()
	}
	m.lock = lock
	return nil
}

// Renew touches the files once an hour, and writes them anew where they are gone.
func (m *Member) Renew(now time.Time) error {
	path := m.lock.Path()
	if held, err := m.lock.Stat(); err == nil {
		if there, err := os.Lstat(path); err == nil && os.SameFile(held, there) {
			if now.Sub(m.renewed) < renewAfter {
				return nil
			}
			m.renewed = now
			return errors.Join(os.Chtimes(path, now, now), os.Chtimes(m.folder.file(m.process.Generation, recordExt), now, now))
		}
	}
	if err := os.MkdirAll(m.folder.path, 0o700); err != nil {
		return err
	}
	return m.take()
}

// Leave releases the lock. The files stay, so that other processes see that this
// one has ended.
func (m *Member) Leave() error { return m.lock.Close() }
