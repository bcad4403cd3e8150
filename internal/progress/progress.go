// Package progress counts bytes on their way, for whoever shows how far a transfer
// is.
package progress

import "io"

// step is how many bytes pass between two reports.
const step = 256 << 10

// Writer counts what is written to it, out of total bytes. It tells report how many
// that were: from time to time, and at the end. It never fails.
func Writer(total int64, report func(done int64)) io.Writer {
	return &writer{total: total, report: report}
}

// Reader counts what is read of r, as [Writer] does.
func Reader(r io.Reader, total int64, report func(done int64)) io.Reader {
	return io.TeeReader(r, Writer(total, report))
}

// ReadCloser is a [Reader] with a Close.
func ReadCloser(r io.ReadCloser, total int64, report func(done int64)) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{Reader(r, total, report), r}
}

type writer struct {
	done, told, total int64
	report            func(done int64)
}

func (w *writer) Write(b []byte) (int, error) {
	w.done += int64(len(b))
	if w.done-w.told >= step || w.done == w.total && w.told < w.done {
		w.told = w.done
		w.report(w.done)
	}
	return len(b), nil
}
