package backoff

// Width is how many creations are sent side by side. Each that the cloud takes
// on at once while as many as allowed are under way allows one more, up to a
// bound; one that it does not take on, or only after it asked for patience,
// halves them. It is not safe for concurrent use.
type Width struct {
	now, most, round int
}

// NewWidth begins with start and never exceeds most. Both are at least one.
func NewWidth(start, most int) *Width {
	most = max(most, 1)
	return &Width{now: min(max(start, 1), most), most: most}
}

// Limit is how many may be under way now, at least one.
func (w *Width) Limit() int { return w.now }

// Round numbers the stretch of time between two narrowings. A caller remembers
// the round in which it sent a creation and hands it back with the result.
func (w *Width) Round() int { return w.round }

// Widen records that a creation of this round was taken on at once, and that as
// many as [Width.Limit] allows were under way with it: a width that is not used
// up proves nothing about a greater one. Those sent before the last narrowing
// prove nothing about what the cloud bears since.
func (w *Width) Widen(round int) {
	if round == w.round {
		w.now = min(w.now+1, w.most)
	}
}

// Narrow records that a creation of this round was not. Creations of one round
// were under way together and fail for one reason, so only the first counts.
func (w *Width) Narrow(round int) {
	if round == w.round {
		w.now = max(w.now/2, 1)
		w.round++
	}
}
