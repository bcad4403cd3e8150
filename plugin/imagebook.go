package plugin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

const (
	// imageFresh is how long the newest image is believed to be the newest:
	// the creations of one scale-up share one lookup.
	imageFresh = 10 * time.Second
	// imageRetry is the pause after an image could not be looked at.
	imageRetry = time.Minute
	// learnTimeout and learnMost bound the looking at images of one listing.
	learnTimeout = 5 * time.Second
	learnMost    = 10
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
	platforms map[string]platform // by image
	retry     map[string]time.Time
}

func newImageBook(client *cloud.Client, wanted string, log *slog.Logger) *imageBook {
	return &imageBook{
		client: client, wanted: wanted, log: log, lookup: make(chan struct{}, 1),
		platforms: map[string]platform{}, retry: map[string]time.Time{},
	}
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
	if fresh && current.ID != "" {
		return current, nil
	}
	found, err := b.client.ResolveImage(ctx, b.wanted)
	if cloud.Unanswered(err) && current.ID != "" {
		b.log.Warn("images cannot be looked up, going on with the last one", "image", current.ID, "reason", err.Error())
		b.mu.Lock()
		defer b.mu.Unlock()
		b.looked = time.Now()
		return current, nil
	}
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

// learn looks at the images of servers that were made by an earlier process. It
// makes a call only for an image that is not known, and takes little time: the
// group's listing waits for it.
func (b *imageBook) learn(ctx context.Context, ids []string) {
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	var pool sync.WaitGroup
	for _, id := range b.unknown(ids) {
		pool.Go(func() {
			found, err := b.client.GetImage(ctx, id)
			if err != nil {
				return // it may be deleted; the present one is the best guess
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.platforms[id] = platformOf(found)
		})
	}
	pool.Wait()
}

// unknown returns the images to look at now.
func (b *imageBook) unknown(ids []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var unknown []string
	for _, id := range ids {
		_, known := b.platforms[id]
		if id == "" || known || time.Now().Before(b.retry[id]) || len(unknown) == learnMost {
			continue
		}
		b.retry[id] = time.Now().Add(imageRetry)
		unknown = append(unknown, id)
	}
	return unknown
}

// platform tells the platform of a server: what it says itself, that of its image,
// or that of the present one, for it may boot from a volume and name none.
func (b *imageBook) platform(server fleet.Server) platform {
	if p, ok := parsePlatform(server.Platform); ok {
		return p
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range []string{server.Image, b.current.ID} {
		if p, ok := b.platforms[id]; ok {
			return p
		}
	}
	return platformOf(cloud.Image{})
}
