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
	noID             bool     // things of that kind have none
	known            []string // nil if they could not be listed
}

// Error implements error.
func (m *missing) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no ")
	if m.note != "" {
		b.WriteString(m.note + " ")
	}
	fmt.Fprintf(&b, "%s is named %q", m.kind, m.name)
	if !m.noID {
		b.WriteString(" or has that ID")
	}
	if near := nearest.To(m.name, m.known, 3); len(near) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(quoted(near), ", "))
	} else if names := slices.Compact(slices.Sorted(slices.Values(m.known))); len(names) > 0 && len(names) <= maxListed {
		fmt.Fprintf(&b, "; there are: %s", strings.Join(quoted(names), ", "))
	} else if m.known != nil && len(names) == 0 {
		b.WriteString("; there is none at all")
	}
	return b.String()
}

// Unwrap makes it an [ErrUnknown].
func (m *missing) Unwrap() []error { return []error{ErrUnknown, ErrNotFound} }

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

// Network is one that servers can be put on.
type Network struct {
	Resource
	// Closed is true for an external network that is not shared. Neutron lets
	// only administrators put servers there, unless its policy says otherwise.
	Closed bool
}

// ResolveNetwork finds a network by ID or name.
func (c *Client) ResolveNetwork(ctx context.Context, nameOrID string) (Network, error) {
	found, err := c.resolveNeutron(ctx, "network", "networks", nameOrID, "router:external", "shared")
	return Network{Resource: found.Resource, Closed: found.External && !found.Shared}, err
}

// ResolveSecurityGroup finds a security group by ID or name.
func (c *Client) ResolveSecurityGroup(ctx context.Context, nameOrID string) (Resource, error) {
	found, err := c.resolveNeutron(ctx, "security group", "security-groups", nameOrID)
	return found.Resource, err
}

// wireNeutron is what is read of a network or a security group.
type wireNeutron struct {
	Resource
	External bool `json:"router:external"`
	Shared   bool `json:"shared"`
}

// resolveNeutron asks by name first, which one call answers, and lists all
// only to say what comes nearest. It asks for these fields beside ID and name.
func (c *Client) resolveNeutron(ctx context.Context, kind, collection, nameOrID string, fields ...string) (wireNeutron, error) {
	list := func(key string) ([]wireNeutron, error) {
		query := url.Values{"fields": append([]string{"id", "name"}, fields...)}
		if key != "" {
			query.Set(key, nameOrID)
		}
		page := map[string][]wireNeutron{}
		err := c.get(ctx, "list "+kind+"s", network, collection, query, &page)
		return page[strings.ReplaceAll(collection, "-", "_")], err
	}
	if isUUID(nameOrID) {
		found, err := list("id")
		if err != nil {
			return wireNeutron{}, err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	found, err := list("name")
	if err != nil {
		return wireNeutron{}, err
	}
	if len(found) == 0 {
		if found, err = list(""); err != nil {
			return wireNeutron{}, &missing{kind: kind, name: nameOrID}
		}
	}
	var all []Resource
	for _, f := range found {
		all = append(all, f.Resource)
	}
	picked, err := pick(kind, nameOrID, all)
	if err != nil {
		return wireNeutron{}, err
	}
	return found[slices.Index(all, picked)], nil
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
	return &missing{kind: "key pair of this user", name: name, known: known, noID: true}
}
