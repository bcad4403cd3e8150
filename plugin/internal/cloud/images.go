package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
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
	// Passed says which newer image of the same name was passed over, and why;
	// empty if none was.
	Passed string
}

type wireGlanceImage struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Owner        string    `json:"owner"`
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
		ID: w.ID, Name: Printable(w.Name), Created: w.Created, OSType: w.OSType,
		Architecture: w.Architecture, MinDisk: w.MinDisk, MinRAM: w.MinRAM,
	}
}

// ResolveImage finds an image by ID, or an active one by name: the newest of the
// project's own, or else of the others. Images that are queued, deactivated or
// hidden do not count, nor do those that other projects share without their having
// been accepted.
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
	named := slices.DeleteFunc(images, func(w wireGlanceImage) bool { return w.Name != nameOrID || w.ID == "" })
	if len(named) == 0 {
		known, _ := c.activeImages(ctx, url.Values{})
		names := make([]string, 0, len(known))
		for _, w := range known {
			names = append(names, w.Name)
		}
		return Image{}, &missing{kind: "image", name: nameOrID, note: "active", known: names}
	}
	newest := func(images []wireGlanceImage) wireGlanceImage {
		return slices.MaxFunc(images, func(a, b wireGlanceImage) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
		})
	}
	chosen := newest(named)
	project := c.session.here().project.ID
	own := slices.DeleteFunc(slices.Clone(named), func(w wireGlanceImage) bool { return w.Owner != project })
	if len(own) == 0 || chosen.Owner == project {
		return chosen.image(), nil
	}
	found := newest(own).image()
	found.Passed = fmt.Sprintf("it is the project's own; another image of that name, %s, is newer and is not used", Printable(chosen.ID))
	return found, nil
}

// GetImage returns one image by ID; it must be active.
func (c *Client) GetImage(ctx context.Context, id string) (Image, error) {
	var wire wireGlanceImage
	if err := c.get(ctx, "show image "+id, image, "images/"+url.PathEscape(id), &wire); err != nil {
		return Image{}, err
	}
	if !strings.EqualFold(strings.ReplaceAll(wire.ID, "-", ""), strings.ReplaceAll(id, "-", "")) {
		return Image{}, &Error{Op: "show image " + id, Kind: ErrTransient, Message: "the answer is about something else"}
	}
	if wire.Status != "active" {
		return Image{}, &Error{Op: "show image " + id, Kind: ErrInvalid, Message: fmt.Sprintf("its status is %.40s, not active", wire.Status)}
	}
	return wire.image(), nil
}

// activeImages lists the images that servers can be made of.
func (c *Client) activeImages(ctx context.Context, query url.Values) ([]wireGlanceImage, error) {
	query.Set("status", "active")
	query.Set("sort", "created_at:desc")
	images, err := readAll[wireGlanceImage](ctx, c, collection{op: "list images", service: image, path: "images", key: "images", query: query})
	return slices.DeleteFunc(images, func(w wireGlanceImage) bool { return w.Status != "active" || w.Hidden }), err
}

// quoteOperator keeps Glance from taking a name for one of its operators
// (image API reference, "List images": "in:" and comparisons).
func quoteOperator(name string) string {
	if operator, _, ok := strings.Cut(name, ":"); ok && operator == "in" {
		return `in:"` + name + `"`
	}
	return name
}
