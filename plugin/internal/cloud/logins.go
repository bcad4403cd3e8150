package cloud

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// firstLogin and longestLogin bound the pause after a login that Keystone did
	// not answer. It doubles.
	firstLogin   = time.Second
	longestLogin = 15 * time.Second
	// refusedLogin is how long credentials that were refused are not tried again,
	// unless the files change: Keystone locks accounts after a few bad logins, and
	// with them every group that uses them.
	refusedLogin = time.Hour
)

// logins paces logins. Calls that need one meanwhile fail with the error of the
// last, so that each failure of Keystone costs one request, however many calls
// wait for a token.
type logins struct {
	random func() float64

	mu     sync.Mutex
	last   error
	stamp  string // of the files that were refused
	failed int    // in a row
	until  time.Time
}

// hold returns why no login is tried now, with files of that stamp.
func (l *logins) hold(stamp string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.stamp != stamp || !time.Now().Before(l.until) {
		return nil
	}
	return l.last
}

// ended records how a login with files of that stamp went.
func (l *logins) ended(stamp string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.last, l.failed = nil, 0
		return
	}
	pause := spread(min(firstLogin<<min(l.failed, 10), longestLogin), l.random)
	l.failed++
	if errors.Is(err, ErrUnauthorized) {
		pause = spread(refusedLogin, l.random)
		err = fmt.Errorf("%w; these credentials are not tried again before %s, unless the file changes",
			err, time.Now().Add(pause).Format(time.TimeOnly))
	}
	l.last, l.stamp, l.until = err, stamp, time.Now().Add(pause)
}
