package plugin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

const (
	// imageFresh is how long the newest image is believed to be the newest:
	// the creations of one scale-up share one lookup.
	imageFresh = 10 * time.Second
	// imageRetry is the pause after an image could not be looked at.
	imageRetry = time.Minute
)

// imageBook knows the image to create servers of, and what the images of
// existing servers say about them.
type imageBook struct {
	client *cloud.Client
	wanted string // name or ID
	log    *slog.Logger

	lookup chan struct{} // held during a lookup; the others wait for its result

	mu        sync.Mutex
	current   cloud.Image
	looked    time.Time
	platforms map[string]platform
	retry     map[string]time.Time
}

func newImageBook(client *cloud.Client, wanted string, current cloud.Image, log *slog.Logger) *imageBook {
	b := &imageBook{
		client: client, wanted: wanted, log: log, lookup: make(chan struct{}, 1),
		platforms: map[string]platform{}, retry: map[string]time.Time{},
	}
	b.take(current)
	return b
}

// newest returns the image to create servers of. A name is looked up again
// once per scale-up; an ID is pinned.
func (b *imageBook) newest(ctx context.Context) (cloud.Image, error) {
	select {
	case b.lookup <- struct{}{}:
		defer func() { <-b.lookup }()
	case <-ctx.Done():
		return cloud.Image{}, ctx.Err()
	}
	b.mu.Lock()
	current, fresh := b.current, time.Since(b.looked) < imageFresh || b.current.ID == b.wanted
	b.mu.Unlock()
	if fresh {
		return current, nil
	}
	found, err := b.client.ResolveImage(ctx, b.wanted)
	if err != nil {
		return cloud.Image{}, err
	}
	b.take(found)
	return found, nil
}

// take makes an image the one that servers are created of.
func (b *imageBook) take(found cloud.Image) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.current; before.ID != "" && before.ID != found.ID {
		b.log.Info("servers are made of another image from now on", "image", found.ID, "made", found.Created.Format(time.DateTime), "before", before.ID)
	}
	if found.Passed != "" && found.Passed != b.current.Passed {
		b.log.Info("several images have the name", "image", found.ID, "detail", found.Passed)
	}
	b.current, b.looked = found, time.Now()
	b.platforms[found.ID] = platformOf(found)
}

// learn looks at the image of a server that was made by an earlier process.
// It makes a call only for an image that is not known.
func (b *imageBook) learn(ctx context.Context, id string) {
	b.mu.Lock()
	_, known := b.platforms[id]
	wait := time.Now().Before(b.retry[id])
	if !known && !wait {
		b.retry[id] = time.Now().Add(imageRetry)
	}
	b.mu.Unlock()
	if id == "" || known || wait {
		return
	}
	found, err := b.client.GetImage(ctx, id)
	if err != nil {
		return // it may be deleted; the present one is the best guess
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.platforms[id] = platformOf(found)
}

// platform tells the platform of a server by its image; a server that boots
// from a volume names none, and has that of the present one.
func (b *imageBook) platform(id string) platform {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.platforms[id]; ok {
		return p
	}
	return b.platforms[b.current.ID]
}
