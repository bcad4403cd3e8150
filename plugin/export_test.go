package plugin

// WithRandom has a group spread its waits by numbers from 0 to below 1, and name its
// servers, as a test says, so that a run can be repeated.
func WithRandom(random func() float64, suffix func() string) Option {
	return func(o *options) { o.random, o.suffix = random, suffix }
}
