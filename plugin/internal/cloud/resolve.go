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
type Resource struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// String is the name, with the ID behind it, for people.
func (r Resource) String() string {
	if r.Name == "" {
		return Printable(r.ID)
	}
	return Printable(fmt.Sprintf("%s (%s)", r.Name, r.ID))
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

// IsID reports whether a text has the form of an ID, and is hardly a name.
func IsID(s string) bool { return isUUID(s) }

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// pick finds the one resource that has this ID or this name.
func pick(kind, nameOrID string, all []Resource) (Resource, error) {
	var named []Resource
	known := make([]string, 0, len(all))
	for _, r := range all {
		if r.ID == "" {
			continue // it could not be used
		}
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
			ids[i] = Printable(r.ID)
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
	listed, err := readAll[struct {
		Resource
		Disk  int `json:"disk"`
		RAM   int `json:"ram"`
		VCPUs int `json:"vcpus"`
	}](ctx, c, collection{op: "list flavors", service: compute, path: "flavors/detail", key: "flavors"})
	if err != nil {
		return Flavor{}, err
	}
	all := make([]Resource, 0, len(listed))
	for _, f := range listed {
		all = append(all, f.Resource)
	}
	found, err := pick("flavor", nameOrID, all)
	if err != nil {
		return Flavor{}, err
	}
	f := listed[slices.Index(all, found)]
	return Flavor{ID: f.ID, Name: Printable(f.Name), Disk: f.Disk, RAM: f.RAM, VCPUs: f.VCPUs}, nil
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
func (c *Client) resolveNeutron(ctx context.Context, kind, path, nameOrID string, fields ...string) (wireNeutron, error) {
	list := func(key string) ([]wireNeutron, error) {
		query := url.Values{"fields": append([]string{"id", "name"}, fields...)}
		if key != "" {
			query.Set(key, nameOrID)
		}
		return readAll[wireNeutron](ctx, c, collection{
			op: "list " + kind + "s", service: network, path: path, key: strings.ReplaceAll(path, "-", "_"), query: query,
		})
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

// ResolveServerGroup finds a server group by ID or name. Nova links no pages of
// them, so that only an empty one would be known to be the last: no further page is
// asked for once the group is found.
func (c *Client) ResolveServerGroup(ctx context.Context, nameOrID string) (Resource, error) {
	groups, err := readUntil(ctx, c, collection{
		op: "list server groups", service: compute, path: "os-server-groups", key: "server_groups", offset: true,
	}, func(read []Resource) bool {
		return slices.ContainsFunc(read, func(r Resource) bool { return r.ID == nameOrID || r.Name == nameOrID })
	})
	if err != nil {
		return Resource{}, err
	}
	return pick("server group", nameOrID, groups)
}

// CheckKeyPair makes sure that the user of the credentials has a key pair. Key
// pairs belong to users, not to projects: a rotation to another user loses it.
func (c *Client) CheckKeyPair(ctx context.Context, name string) error {
	pairs, err := readAll[struct {
		KeyPair struct{ Name string } `json:"keypair"`
	}](ctx, c, collection{op: "list key pairs", service: compute, path: "os-keypairs", key: "keypairs"})
	if err != nil {
		return err
	}
	known := make([]string, 0, len(pairs))
	for _, pair := range pairs {
		if pair.KeyPair.Name == name {
			return nil
		}
		known = append(known, pair.KeyPair.Name)
	}
	return &missing{kind: "key pair of this user", name: name, known: known, noID: true}
}
