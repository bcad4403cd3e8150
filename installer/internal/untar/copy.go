package untar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Copy writes a stream that is the executable itself, not an archive, under
// name. Limits and errors are those of [Extract].
func Copy(ctx context.Context, root *os.Root, r io.Reader, name string, opts Options) ([]File, error) {
	source := &sourceReader{ctx: ctx, r: r}
	x := &extraction{root: root, opts: opts, buffer: make([]byte, bufferSize)}
	file, err := x.write(name, modeExecutable, &limitReader{r: source, left: opts.Limits.allowed(opts.Size)})
	if err != nil {
		return nil, source.prefer(err)
	}
	if !errors.Is(source.err, io.EOF) {
		return nil, fmt.Errorf("%w: not read to the end", ErrCorrupt)
	}
	if file.Size == 0 {
		return nil, fmt.Errorf("%w: %s is empty", ErrNoExecutable, name)
	}
	return []File{file}, nil
}
