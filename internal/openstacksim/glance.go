package openstacksim

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
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
	// Owner is the name of a project; empty means nobody that the users know.
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

const imagePage = 25

func (s *Simulator) glanceRoutes() []route {
	return []route{
		{http.MethodGet, "/image", OpImageInfo, true, s.glanceVersions},
		{http.MethodGet, "/image/versions", OpImageInfo, true, s.glanceVersions},
		{http.MethodGet, "/image/v2/images", OpImageList, false, s.listImages},
		{http.MethodGet, "/image/v2/images/{id}", OpImageShow, false, s.showImage},
		{http.MethodPatch, "/image/v2/images/{id}", OpImageUpdate, false, s.updateImage},
	}
}

func glanceError(e *apiError) *answer {
	if e.status == http.StatusUnauthorized {
		e = &apiError{status: e.status, message: "This server could not verify that you are authorized to access the document you requested. " +
			"Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required."}
	}
	return plainError(e)
}

func (s *Simulator) glanceVersions(c *call) (*answer, error) {
	c.plain = true
	versions := []any{}
	for _, minor := range []int{15, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0} {
		status := "SUPPORTED"
		if minor == 15 {
			status = "CURRENT"
		}
		versions = append(versions, map[string]any{
			"id": fmt.Sprintf("v2.%d", minor), "status": status, "links": []link{{Rel: "self", Href: c.root(serviceImage) + "/v2/"}},
		})
	}
	status := http.StatusMultipleChoices
	if strings.HasSuffix(c.request.URL.Path, "/versions") {
		status = http.StatusOK
	}
	return &answer{status: status, body: map[string]any{"versions": versions}}, nil
}

func (s *Simulator) plantImage(image Image) string {
	image.ID = orElse(image.ID, s.newID)
	if image.Status == "" {
		image.Status = "active"
	}
	if image.Visibility == "" {
		image.Visibility = "public"
	}
	image.owner = s.projectID(image.Owner)
	image.created = s.present.Add(-image.Age)
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
		"size": 4096, "virtual_size": 4096, "checksum": stableHex(image.ID),
		"os_hash_algo": "sha512", "os_hash_value": strings.Repeat(stableHex(image.ID), 4),
		"created_at": image.created.UTC().Format(withZone), "updated_at": image.created.UTC().Format(withZone),
		"self": "/v2/images/" + image.ID, "file": "/v2/images/" + image.ID + "/file", "schema": "/v2/schemas/image",
		"stores": "file",
	})
	if image.Status == "queued" {
		view["size"], view["virtual_size"], view["checksum"] = nil, nil, nil
	}
	return view
}

// visible tells whether a project may see and use an image.
func (s *Simulator) visible(project string, image Image) bool {
	switch {
	case image.Visibility == "public", image.Visibility == "community", image.owner == project:
		return true
	case image.Visibility == "shared":
		p := s.project(project)
		return p != nil && slices.Contains(image.AcceptedBy, p.Name)
	default:
		return false
	}
}

func (s *Simulator) visibleImage(project, id string) *Image {
	for i := range s.images {
		if s.images[i].ID == id && s.visible(project, s.images[i]) {
			return &s.images[i]
		}
	}
	return nil
}

func (s *Simulator) showImage(c *call) (*answer, error) {
	image := s.visibleImage(c.auth.project.ID, c.arg("id"))
	if image == nil {
		return nil, notFound("No image found with ID %s", c.arg("id"))
	}
	return ok(imageView(*image))
}

// updateImage changes, adds and removes properties, by the two fields of Glance's
// JSON patch that they need.
func (s *Simulator) updateImage(c *call) (*answer, error) {
	var changes []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if !strings.HasPrefix(c.request.Header.Get("Content-Type"), "application/openstack-images-v2") {
		return nil, refuse(http.StatusUnsupportedMediaType, "")
	}
	if err := c.decode(&changes); err != nil {
		return nil, err
	}
	image := s.visibleImage(c.auth.project.ID, c.arg("id"))
	if image == nil {
		return nil, notFound("No image found with ID %s", c.arg("id"))
	}
	if image.owner != c.auth.project.ID {
		return nil, forbidden("You are not authorized to complete modify_image action.")
	}
	properties := maps.Clone(image.Properties)
	if properties == nil {
		properties = map[string]string{}
	}
	for _, change := range changes {
		name := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(change.Path, "/"), "~1", "/"), "~0", "~")
		_, has := properties[name]
		if _, fixed := imageView(Image{})[name]; fixed {
			return nil, badRequest("The simulator changes properties of images only, not %s.", name)
		}
		switch {
		case change.Op == "remove" && has:
			delete(properties, name)
		case change.Op == "add", change.Op == "replace" && has:
			properties[name] = fmt.Sprint(change.Value)
		default:
			return nil, conflict("Property %s does not exist.", name)
		}
	}
	image.Properties = properties
	return ok(imageView(*image))
}

func (s *Simulator) listImages(c *call) (*answer, error) {
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
	if err := sortImages(matches, c.query.Get("sort"), c.query.Get("sort_key"), c.query.Get("sort_dir")); err != nil {
		return nil, err
	}
	if marker := c.query.Get("marker"); marker != "" {
		at := slices.IndexFunc(matches, func(image Image) bool { return image.ID == marker })
		if at < 0 {
			return nil, badRequest("No image found with ID %s", marker)
		}
		matches = matches[at+1:]
	}
	limit, err := imageLimit(c.query.Get("limit"))
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
	return ok(body)
}

func imageLimit(asked string) (int, error) {
	if asked == "" {
		return imagePage, nil
	}
	n, err := strconv.Atoi(asked)
	if err != nil {
		return 0, badRequest("limit param must be an integer")
	}
	if n < 0 {
		return 0, badRequest("limit param must be positive")
	}
	return min(n, 1000), nil
}

// pageLink is the listing's own address, its parameters in the order of the
// request, from a marker on.
func pageLink(c *call, marker string) string {
	var parameters []string
	for parameter := range strings.SplitSeq(c.request.URL.RawQuery, "&") {
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
func (s *Simulator) imageWanted(c *call, image Image) (bool, error) {
	visibility := c.query.Get("visibility")
	if !slices.Contains([]string{"", "all", "public", "private", "shared", "community"}, visibility) {
		return false, badRequest("Invalid visibility value: %s", visibility)
	}
	switch {
	case !s.visible(c.auth.project.ID, image),
		image.Visibility == "community" && image.owner != c.auth.project.ID && visibility != "community" && visibility != "all",
		visibility != "" && visibility != "all" && visibility != image.Visibility,
		image.Hidden != (c.query.Get("os_hidden") == "true"):
		return false, nil
	}
	view := imageView(image)
	for key, values := range c.query {
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
		return false, badRequest("The simulator does not filter images by %s.", key)
	}
	return wanted == actual, nil
}

// splitQuoted splits the operand of Glance's operator in:, whose parts may be quoted.
func splitQuoted(list string) []string {
	var parts []string
	var part strings.Builder
	quoted := false
	for _, r := range list {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	return append(parts, part.String())
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
		return badRequest("Invalid sort key: %s. It must be one of the following: %s.", key, strings.Join(keys, ", "))
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
