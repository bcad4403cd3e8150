// Package glance is the image service of the simulator: which images there
// are, who sees them, and their properties.
//
// Images have no data: there is nothing to upload, to download or to boot.
package glance

import (
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// Image is one of Glance's. The zero value of a field means what a plain
// public, active image has.
type Image struct {
	// ID is chosen when empty.
	ID, Name string
	// Status is active unless set: queued, saving, active, deactivated, deleted …
	Status string
	// Visibility is public unless set: public, private, shared, community.
	Visibility string
	// Owner is the name of a project; empty means a project unknown to the users.
	Owner string
	// AcceptedBy are names of projects that accepted a shared image.
	AcceptedBy []string
	// Hidden keeps it out of listings that do not ask for hidden ones.
	Hidden bool
	// MinDisk is in GiB, MinRAM in MiB.
	MinDisk, MinRAM int
	// Properties are shown beside the fields, such as os_type and architecture.
	Properties map[string]string
	// Age is how long before its entry the image was made.
	Age     time.Duration
	created time.Time
	owner   string
}

const pageSize = 25

// Glance is the service of one cloud.
type Glance struct {
	cloud  *cloud.Cloud
	images []Image
}

// New adds Glance to a cloud.
func New(c *cloud.Cloud, images []Image) *Glance {
	s := &Glance{cloud: c}
	for _, image := range images {
		s.plant(image)
	}
	api := c.Serve(cloud.Service{
		Name: "image", Wrap: wrap, OwnUnauthorized: true,
		NoMethod: func(method string) string { return "The method " + method + " is not allowed for this resource. " },
	})
	api.Open("GET ", fault.OpImageInfo, s.versions)
	api.Open("GET /versions", fault.OpImageInfo, s.versions)
	api.Handle("GET /v2/images", fault.OpImageList, s.listImages)
	api.Handle("GET /v2/images/{id}", fault.OpImageShow, cloud.With(s.own, s.showImage))
	api.Handle("PATCH /v2/images/{id}", fault.OpImageUpdate, s.updateImage)
	return s
}

func wrap(e *cloud.Error) *cloud.Answer {
	if e.Status == http.StatusUnauthorized {
		e = &cloud.Error{Status: e.Status, Message: "This server could not verify that you are authorized to access the document you requested. " +
			"Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required."}
	}
	return cloud.PlainError(e)
}

// AddImage adds an image and gives its ID.
func (s *Glance) AddImage(image Image) (id string) {
	s.cloud.Do(func() { id = s.plant(image) })
	return id
}

// RemoveImages takes all images of a name away and says how many they were.
func (s *Glance) RemoveImages(name string) (removed int) {
	s.cloud.Do(func() {
		before := len(s.images)
		s.images = slices.DeleteFunc(s.images, func(i Image) bool { return i.Name == name })
		removed = before - len(s.images)
	})
	return removed
}

// First returns the first image of a name or, for an empty one, of all. The lock is held.
func (s *Glance) First(name string) *Image {
	return s.find(func(i Image) bool { return i.Name == name || name == "" })
}

// Visible returns an image that a project may see and use; nil if there is none. The lock is held.
func (s *Glance) Visible(project, id string) *Image {
	return s.find(func(i Image) bool { return i.ID == id && s.visible(project, i) })
}

// Image returns an image without regard to who may see it; nil if there is none. The lock is held.
func (s *Glance) Image(id string) *Image {
	return s.find(func(i Image) bool { return i.ID == id })
}

func (s *Glance) find(is func(Image) bool) *Image {
	if at := slices.IndexFunc(s.images, is); at >= 0 {
		return &s.images[at]
	}
	return nil
}

func (s *Glance) versions(c *cloud.Call) (*cloud.Answer, error) {
	c.Plain = true
	versions := []any{}
	for _, minor := range []int{15, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0} {
		status := "SUPPORTED"
		if minor == 15 {
			status = "CURRENT"
		}
		versions = append(versions, map[string]any{
			"id": fmt.Sprintf("v2.%d", minor), "status": status, "links": []cloud.Link{{Rel: "self", Href: c.Root("image") + "/v2/"}},
		})
	}
	status := http.StatusMultipleChoices
	if strings.HasSuffix(c.Request.URL.Path, "/versions") {
		status = http.StatusOK
	}
	return &cloud.Answer{Status: status, Body: map[string]any{"versions": versions}}, nil
}

func (s *Glance) plant(image Image) string {
	image.ID = s.cloud.OrID(image.ID)
	if image.Status == "" {
		image.Status = "active"
	}
	if image.Visibility == "" {
		image.Visibility = "public"
	}
	image.owner = s.cloud.ProjectID(image.Owner)
	image.created = s.cloud.Now().Add(-image.Age)
	s.images = append(s.images, image)
	return image.ID
}

func imageView(image Image) map[string]any {
	view := map[string]any{}
	for key, value := range image.Properties {
		view[key] = value
	}
	maps.Copy(view, map[string]any{
		"id": image.ID, "name": image.Name, "status": image.Status, "visibility": image.Visibility,
		"owner": image.owner, "os_hidden": image.Hidden, "protected": false, "tags": []string{},
		"min_disk": image.MinDisk, "min_ram": image.MinRAM, "disk_format": "raw", "container_format": "bare",
		"size": 4096, "virtual_size": 4096, "checksum": cloud.StableHex(image.ID),
		"os_hash_algo": "sha512", "os_hash_value": strings.Repeat(cloud.StableHex(image.ID), 4),
		"created_at": image.created.UTC().Format(cloud.Seconds), "updated_at": image.created.UTC().Format(cloud.Seconds),
		"self": "/v2/images/" + image.ID, "file": "/v2/images/" + image.ID + "/file", "schema": "/v2/schemas/image",
		"stores": "file",
	})
	if image.Status == "queued" {
		view["size"], view["virtual_size"], view["checksum"] = nil, nil, nil
	}
	return view
}

// visible tells whether a project may see and use an image.
func (s *Glance) visible(project string, image Image) bool {
	switch {
	case image.Visibility == "public", image.Visibility == "community", image.owner == project:
		return true
	case image.Visibility == "shared":
		p := s.cloud.Project(project)
		return p != nil && slices.Contains(image.AcceptedBy, p.Name)
	default:
		return false
	}
}

// own is the image that the path of a call names.
func (s *Glance) own(c *cloud.Call) (*Image, error) {
	if image := s.Visible(c.Auth.Project.ID, c.Arg("id")); image != nil {
		return image, nil
	}
	return nil, cloud.NotFound("No image found with ID %s", c.Arg("id"))
}

func (s *Glance) showImage(_ *cloud.Call, image *Image) (*cloud.Answer, error) {
	return cloud.OK(imageView(*image))
}

// updateImage changes, adds and removes properties, by the two fields of Glance's
// JSON patch that they need.
func (s *Glance) updateImage(c *cloud.Call) (*cloud.Answer, error) {
	var changes []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if !strings.HasPrefix(c.Request.Header.Get("Content-Type"), "application/openstack-images-v2") {
		return nil, cloud.Refuse(http.StatusUnsupportedMediaType, "")
	}
	if err := c.Decode(&changes); err != nil {
		return nil, err
	}
	image, err := s.own(c)
	if err != nil {
		return nil, err
	}
	if image.owner != c.Auth.Project.ID {
		return nil, cloud.Forbidden("You are not authorized to complete modify_image action.")
	}
	properties := map[string]string{}
	maps.Copy(properties, image.Properties)
	for _, change := range changes {
		name := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(change.Path, "/"), "~1", "/"), "~0", "~")
		_, has := properties[name]
		if _, fixed := imageView(Image{})[name]; fixed {
			return nil, cloud.BadRequest("The simulator changes properties of images only, not %s.", name)
		}
		switch {
		case change.Op == "remove" && has:
			delete(properties, name)
		case change.Op == "add", change.Op == "replace" && has:
			properties[name] = fmt.Sprint(change.Value)
		default:
			return nil, cloud.Conflict("Property %s does not exist.", name)
		}
	}
	image.Properties = properties
	return cloud.OK(imageView(*image))
}

func (s *Glance) listImages(c *cloud.Call) (*cloud.Answer, error) {
	matches := []Image{}
	for _, image := range s.images {
		wanted, err := s.imageWanted(c, image)
		if err != nil {
			return nil, err
		}
		if wanted {
			matches = append(matches, image)
		}
	}
	if err := sortImages(matches, c.Query.Get("sort"), c.Query.Get("sort_key"), c.Query.Get("sort_dir")); err != nil {
		return nil, err
	}
	if marker := c.Query.Get("marker"); marker != "" {
		at := slices.IndexFunc(matches, func(image Image) bool { return image.ID == marker })
		if at < 0 {
			return nil, cloud.BadRequest("No image found with ID %s", marker)
		}
		matches = matches[at+1:]
	}
	limit, err := imageLimit(c.Query.Get("limit"))
	if err != nil {
		return nil, err
	}
	body := map[string]any{"schema": "/v2/schemas/images", "first": pageLink(c, "")}
	matches = matches[:min(len(matches), limit)]
	if len(matches) == limit && limit > 0 {
		body["next"] = pageLink(c, matches[len(matches)-1].ID)
	}
	views := []any{}
	for _, image := range matches {
		views = append(views, imageView(image))
	}
	body["images"] = views
	return cloud.OK(body)
}

func imageLimit(asked string) (int, error) {
	if asked == "" {
		return pageSize, nil
	}
	n, err := strconv.Atoi(asked)
	if err != nil {
		return 0, cloud.BadRequest("limit param must be an integer")
	}
	if n < 0 {
		return 0, cloud.BadRequest("limit param must be positive")
	}
	return min(n, 1000), nil
}

// pageLink is the listing's own address, its parameters in the order of the
// request, from a marker on.
func pageLink(c *cloud.Call, marker string) string {
	var parameters []string
	for parameter := range strings.SplitSeq(c.Request.URL.RawQuery, "&") {
		key, value, _ := strings.Cut(parameter, "=")
		plain, err := url.QueryUnescape(value)
		if err == nil && key != "" && key != "marker" {
			parameters = append(parameters, key+"="+url.QueryEscape(plain))
		}
	}
	if marker != "" {
		parameters = append(parameters, "marker="+marker)
	}
	if len(parameters) == 0 {
		return "/v2/images"
	}
	return "/v2/images?" + strings.Join(parameters, "&")
}

// imageWanted applies the filters of a listing.
func (s *Glance) imageWanted(c *cloud.Call, image Image) (bool, error) {
	visibility := c.Query.Get("visibility")
	if !slices.Contains([]string{"", "all", "public", "private", "shared", "community"}, visibility) {
		return false, cloud.BadRequest("Invalid visibility value: %s", visibility)
	}
	switch {
	case !s.visible(c.Auth.Project.ID, image),
		image.Visibility == "community" && image.owner != c.Auth.Project.ID && visibility != "community" && visibility != "all",
		visibility != "" && visibility != "all" && visibility != image.Visibility,
		image.Hidden != (c.Query.Get("os_hidden") == "true"):
		return false, nil
	}
	view := imageView(image)
	for key, values := range c.Query {
		if fits, err := imageField(key, values[len(values)-1], fmt.Sprint(view[key])); err != nil || !fits {
			return false, err
		}
	}
	return true, nil
}

// imageField tells whether a field of an image is what one filter wants.
func imageField(key, wanted, actual string) (bool, error) {
	switch key {
	case "limit", "marker", "sort", "sort_key", "sort_dir", "visibility", "os_hidden", "member_status":
		return true, nil
	case "name", "id", "status":
		if list, isList := strings.CutPrefix(wanted, "in:"); isList {
			return slices.Contains(splitQuoted(list), actual), nil
		}
	case "created_at", "updated_at":
		return false, cloud.BadRequest("The simulator does not filter images by %s.", key)
	}
	return wanted == actual, nil
}

// splitQuoted splits the operand of Glance's operator in:, whose parts may be
// quoted as in CSV.
func splitQuoted(list string) []string {
	reader := csv.NewReader(strings.NewReader(list))
	reader.LazyQuotes = true
	parts, err := reader.Read()
	if err != nil {
		return []string{list}
	}
	return parts
}

// sortImages orders by sort=key:dir or sort_key and sort_dir; newest first by default.
func sortImages(images []Image, both, key, direction string) error {
	if both != "" {
		first, _, _ := strings.Cut(both, ",")
		key, direction, _ = strings.Cut(first, ":")
	}
	if key == "" {
		key = "created_at"
	}
	keys := []string{
		"name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at",
	}
	if !slices.Contains(keys, key) {
		return cloud.BadRequest("Invalid sort key: %s. It must be one of the following: %s.", key, strings.Join(keys, ", "))
	}
	slices.SortStableFunc(images, func(a, b Image) int {
		order := strings.Compare(fmt.Sprint(imageView(a)[key]), fmt.Sprint(imageView(b)[key]))
		if key == "created_at" || key == "updated_at" {
			order = a.created.Compare(b.created)
		}
		if order == 0 {
			order = strings.Compare(a.ID, b.ID)
		}
		if direction != "asc" {
			order = -order
		}
		return order
	})
	return nil
}
