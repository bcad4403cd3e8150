package openstacksim

import (
	"cmp"
	"log/slog"
	"time"
)

// Options says what cloud a simulator is. The zero value is a small cloud with
// room for 2000 servers, without SSH, whose servers take two seconds to build.
//
// A duration of zero takes its default; a negative one means "at once".
type Options struct {
	// Seed is what exists from the start; nil means [DefaultSeed].
	Seed *Seed

	// BuildTime is the time from the answer to a create to ACTIVE; 2 s unless set.
	BuildTime time.Duration
	// DeleteTime is the time a deletion takes; 1 s unless set.
	DeleteTime time.Duration
	// ActionTime is the time of stop, start, suspend and so on; 1 s unless set.
	ActionTime time.Duration
	// BootTime is the time from ACTIVE to the first answer over SSH; at once unless set.
	BootTime time.Duration
	// TokenLife is how long a token is good for; 24 h unless set.
	TokenLife time.Duration

	// MaxLimit is the greatest page of a server listing, Nova's max_limit; 1000 unless set.
	MaxLimit int
	// MaxMicroversion is the greatest microversion of Nova, "2.93" unless set.
	MaxMicroversion string
	// NoVersions takes Nova's version documents away (404), as some proxies do.
	NoVersions bool

	// SSH makes servers answer SSH; nil leaves it out.
	SSH *SSH

	// Logger gets a line per call; nil discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now, which testing/synctest fakes.
	Now func() time.Time
	// RandomSeed makes the random choices (identifiers, shares) of two
	// simulators the same when it is the same and not 0.
	RandomSeed uint64
}

func (o Options) withDefaults() Options {
	if o.Seed == nil {
		seed := DefaultSeed()
		o.Seed = &seed
	}
	o.BuildTime = orDefault(o.BuildTime, 2*time.Second)
	o.DeleteTime = orDefault(o.DeleteTime, time.Second)
	o.ActionTime = orDefault(o.ActionTime, time.Second)
	o.BootTime = max(o.BootTime, 0)
	o.TokenLife = orDefault(o.TokenLife, 24*time.Hour)
	o.MaxLimit = cmp.Or(max(o.MaxLimit, 0), 1000)
	o.MaxMicroversion = cmp.Or(o.MaxMicroversion, "2.93")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func orDefault(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return 0
	default:
		return d
	}
}
