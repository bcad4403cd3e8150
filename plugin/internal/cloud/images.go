package cloud

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Image is what a group needs to know of a Glance image.
type Image struct {
	ID, Name string
	Created  time.Time
	// OSType is Glance's os_type, for example "linux" or "windows", and
	// Architecture its architecture, for example "x86_64"; empty if not set.
	OSType, Architecture string
	// MinDisk is in GiB, MinRAM in MiB.
	MinDisk, MinRAM int
}

type wireGlanceImage struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Status       string    `json:"status"`
	Hidden       bool      `json:"os_hidden"`
	Created      time.Time `json:"created_at"`
	OSType       string    `json:"os_type"`
	Architecture string    `json:"architecture"`
	MinDisk      int       `json:"min_disk"`
	MinRAM       int       `json:"min_ram"`
}

func (w wireGlanceImage) image() Image {
	return Image{
		ID: w.ID, Name: w.Name, Created: w.Created, OSType: w.OSType,
		Architecture: w.Architecture, MinDisk: w.MinDisk, MinRAM: w.MinRAM,
	}
}

// ResolveImage finds an image by ID, or the newest active one by name. Images
// that are queued, deactivated or hidden do not count, nor do those that other
// projects share without their having been accepted.
func (c *Client) ResolveImage(ctx context.Context, nameOrID string) (Image, error) {
	if isUUID(nameOrID) {
		found, err := c.GetImage(ctx, nameOrID)
		if !isNotFound(err) {
			return found, err
		}
	}
	images, err := c.activeImages(ctx, url.Values{"name": {quoteOperator(nameOrID)}})
	if err != nil {
		return Image{}, err
	}
	newest := Image{}
	for _, candidate := range images {
		if candidate.Name == nameOrID && (newest.ID == "" || candidate.Created.After(newest.Created)) {
			newest = candidate
		}
	}
	if newest.ID == "" {
		names, _ := c.imageNames(ctx)
		return Image{}, &missing{kind: "image", name: nameOrID, note: "active", known: names}
	}
	return newest, nil
}

// GetImage returns one image by ID; it must be active.
func (c *Client) GetImage(ctx context.Context, id string) (Image, error) {
	var wire wireGlanceImage
	if err := c.get(ctx, "show image "+id, image, "images/"+url.PathEscape(id), nil, &wire); err != nil {
		return Image{}, err
	}
	if wire.Status != "active" {
		return Image{}, &Error{Op: "show image " + id, Kind: ErrInvalid, Message: fmt.Sprintf("its status is %s, not active", wire.Status)}
	}
	return wire.image(), nil
}

func (c *Client) activeImages(ctx context.Context, query url.Values) ([]Image, error) {
	query.Set("status", "active")
	query.Set("sort", "created_at:desc")
	var images []Image
	marker := ""
	for {
		var page struct {
			Images []wireGlanceImage `json:"images"`
			Next   string            `json:"next"`
		}
		if marker != "" {
			query.Set("marker", marker)
		}
		if err := c.get(ctx, "list images", image, "images", query, &page); err != nil {
			return nil, err
		}
		for _, wire := range page.Images {
			if wire.Status == "active" && !wire.Hidden {
				images = append(images, wire.image())
			}
		}
		next, err := markerOf(page.Next)
		if err != nil || next == "" || next == marker {
			return images, err
		}
		marker = next
	}
}

func (c *Client) imageNames(ctx context.Context) ([]string, error) {
	images, err := c.activeImages(ctx, url.Values{})
	names := make([]string, 0, len(images))
	for _, i := range images {
		names = append(names, i.Name)
	}
	return names, err
}

// quoteOperator keeps Glance from taking a name for one of its operators
// (image API reference, "List images": "in:" and comparisons).
func quoteOperator(name string) string {
	if operator, _, ok := strings.Cut(name, ":"); ok && operator == "in" {
		return `in:"` + name + `"`
	}
	return name
}
