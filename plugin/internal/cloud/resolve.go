package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

// Resource is something found by name or ID.
type Resource struct{ ID, Name string }

// String is the name, with the ID behind it, for people.
func (r Resource) String() string {
	if r.Name == "" {
		return r.ID
	}
	return fmt.Sprintf("%s (%s)", r.Name, r.ID)
}

// maxListed is how many names are all listed when none is near.
const maxListed = 12

// missing says that nothing has a name, and what comes nearest.
type missing struct {
	kind, name, note string
	known            []string
}

// Error implements error.
func (m *missing) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no ")
	if m.note != "" {
		b.WriteString(m.note + " ")
	}
	fmt.Fprintf(&b, "%s is named %q or has that ID", m.kind, m.name)
	if near := nearest.To(m.name, m.known, 3); len(near) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(quoted(near), ", "))
	} else if names := slices.Compact(slices.Sorted(slices.Values(m.known))); len(names) > 0 && len(names) <= maxListed {
		fmt.Fprintf(&b, "; there are: %s", strings.Join(quoted(names), ", "))
	}
	return b.String()
}

// Unwrap makes it an [ErrNotFound].
func (m *missing) Unwrap() error { return ErrNotFound }

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	return out
}

// uuid is a UUID, with hyphens or without, as services hand them out.
var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// isUUID tells what may be the ID of anything but a flavor.
func isUUID(s string) bool { return uuid.MatchString(s) }

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// pick finds the one resource that has this ID or this name.
func pick(kind, nameOrID string, all []Resource) (Resource, error) {
	var named []Resource
	known := make([]string, 0, len(all))
	for _, r := range all {
		if r.ID == nameOrID {
			return r, nil
		}
		if r.Name == nameOrID {
			named = append(named, r)
		}
		known = append(known, r.Name)
	}
	switch len(named) {
	case 0:
		return Resource{}, &missing{kind: kind, name: nameOrID, known: known}
	case 1:
		return named[0], nil
	default:
		ids := make([]string, len(named))
		for i, r := range named {
			ids[i] = r.ID
		}
		return Resource{}, fmt.Errorf("%w: %d %ss are named %q; use one of their IDs: %s",
			ErrAmbiguous, len(named), kind, nameOrID, strings.Join(ids, ", "))
	}
}

// Flavor is a size of servers.
type Flavor struct {
	ID, Name string
	// Disk is the size of the root disk in GiB; 0 asks for a volume.
	Disk int
	// RAM is in MiB.
	RAM, VCPUs int
}

// ResolveFlavor finds a flavor by ID or name.
func (c *Client) ResolveFlavor(ctx context.Context, nameOrID string) (Flavor, error) {
	var all []Resource
	flavors := map[string]Flavor{}
	marker := ""
	for {
		var page struct {
			Flavors []struct {
				ID    string `json:"id"`
				Name  string `json:"name"`
				Disk  int    `json:"disk"`
				RAM   int    `json:"ram"`
				VCPUs int    `json:"vcpus"`
			} `json:"flavors"`
			Links []struct{ Rel, Href string } `json:"flavors_links"`
		}
		query := url.Values{}
		if marker != "" {
			query.Set("marker", marker)
		}
		if err := c.get(ctx, "list flavors", compute, "flavors/detail", query, &page); err != nil {
			return Flavor{}, err
		}
		for _, f := range page.Flavors {
			all = append(all, Resource{f.ID, f.Name})
			flavors[f.ID] = Flavor{ID: f.ID, Name: f.Name, Disk: f.Disk, RAM: f.RAM, VCPUs: f.VCPUs}
		}
		if len(page.Links) == 0 || len(page.Flavors) == 0 || page.Flavors[len(page.Flavors)-1].ID == marker {
			break
		}
		marker = page.Flavors[len(page.Flavors)-1].ID
	}
	found, err := pick("flavor", nameOrID, all)
	return flavors[found.ID], err
}

// ResolveNetwork finds a network by ID or name.
func (c *Client) ResolveNetwork(ctx context.Context, nameOrID string) (Resource, error) {
	return c.resolveNeutron(ctx, "network", "networks", nameOrID)
}

// ResolveSecurityGroup finds a security group by ID or name.
func (c *Client) ResolveSecurityGroup(ctx context.Context, nameOrID string) (Resource, error) {
	return c.resolveNeutron(ctx, "security group", "security-groups", nameOrID)
}

// resolveNeutron asks by name first, which one call answers, and lists all
// only to say what comes nearest.
func (c *Client) resolveNeutron(ctx context.Context, kind, collection, nameOrID string) (Resource, error) {
	if isUUID(nameOrID) {
		found, err := c.neutron(ctx, kind, collection, url.Values{"id": {nameOrID}})
		if err != nil || len(found) == 1 {
			return first(found), err
		}
	}
	found, err := c.neutron(ctx, kind, collection, url.Values{"name": {nameOrID}})
	if err != nil {
		return Resource{}, err
	}
	if len(found) == 0 {
		found, _ = c.neutron(ctx, kind, collection, url.Values{})
	}
	return pick(kind, nameOrID, found)
}

func first(found []Resource) Resource {
	if len(found) == 0 {
		return Resource{}
	}
	return found[0]
}

func (c *Client) neutron(ctx context.Context, kind, collection string, query url.Values) ([]Resource, error) {
	query["fields"] = []string{"id", "name"}
	page := map[string][]struct{ ID, Name string }{}
	if err := c.get(ctx, "list "+kind+"s", network, collection, query, &page); err != nil {
		return nil, err
	}
	var found []Resource
	for _, r := range page[strings.ReplaceAll(collection, "-", "_")] {
		found = append(found, Resource{r.ID, r.Name})
	}
	return found, nil
}

// ResolveServerGroup finds a server group by ID or name.
func (c *Client) ResolveServerGroup(ctx context.Context, nameOrID string) (Resource, error) {
	var page struct {
		Groups []struct{ ID, Name string } `json:"server_groups"`
	}
	if err := c.get(ctx, "list server groups", compute, "os-server-groups", nil, &page); err != nil {
		return Resource{}, err
	}
	var all []Resource
	for _, g := range page.Groups {
		all = append(all, Resource{g.ID, g.Name})
	}
	return pick("server group", nameOrID, all)
}

// CheckKeyPair makes sure that the user of the credentials has a key pair. Key
// pairs belong to users, not to projects: a rotation to another user loses it.
func (c *Client) CheckKeyPair(ctx context.Context, name string) error {
	var page struct {
		KeyPairs []struct {
			KeyPair struct{ Name string } `json:"keypair"`
		} `json:"keypairs"`
	}
	if err := c.get(ctx, "list key pairs", compute, "os-keypairs", nil, &page); err != nil {
		return err
	}
	known := make([]string, 0, len(page.KeyPairs))
	for _, k := range page.KeyPairs {
		if k.KeyPair.Name == name {
			return nil
		}
		known = append(known, k.KeyPair.Name)
	}
	return &missing{kind: "key pair of this user", name: name, known: known}
}
