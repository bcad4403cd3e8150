package nova

import (
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// Flavor is a size of servers. RAM is in MiB, Disk in GiB.
type Flavor struct {
	// ID is chosen when empty.
	ID, Name         string
	VCPUs, RAM, Disk int
}

func (s *Nova) listFlavors(c *cloud.Call) (*cloud.Answer, error) {
	views := []any{}
	for _, f := range s.flavors {
		view := map[string]any{"id": f.ID, "name": f.Name, "links": links(c, "flavors", f.ID)}
		if c.AtLeast(55) {
			view["description"] = nil
		}
		views = append(views, view)
	}
	return cloud.OK(map[string]any{"flavors": views})
}

func (s *Nova) detailFlavors(c *cloud.Call) (*cloud.Answer, error) {
	views := []any{}
	for _, f := range s.flavors {
		views = append(views, flavorView(c, f))
	}
	return cloud.OK(map[string]any{"flavors": views})
}

// flavor is the one that the path of a call names.
func (s *Nova) flavor(c *cloud.Call) (Flavor, error) {
	f, found := s.findFlavor(c.Arg("id"))
	if !found {
		return f, cloud.NotFound("Flavor %s could not be found.", c.Arg("id"))
	}
	return f, nil
}

func (s *Nova) showFlavor(c *cloud.Call, f Flavor) (*cloud.Answer, error) {
	return cloud.One("flavor", flavorView(c, f))
}

func (s *Nova) showExtraSpecs(*cloud.Call, Flavor) (*cloud.Answer, error) {
	return cloud.One("extra_specs", map[string]any{})
}

func flavorView(c *cloud.Call, f Flavor) map[string]any {
	view := map[string]any{
		"id": f.ID, "name": f.Name, "ram": f.RAM, "disk": f.Disk, "vcpus": f.VCPUs, "swap": "",
		"OS-FLV-EXT-DATA:ephemeral": 0, "OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true,
		"rxtx_factor": 1.0, "links": links(c, "flavors", f.ID),
	}
	if c.AtLeast(55) {
		view["description"] = nil
	}
	if c.AtLeast(61) {
		view["extra_specs"] = map[string]any{}
	}
	if c.AtLeast(75) {
		view["swap"] = 0
	}
	return view
}

func (s *Nova) findFlavor(id string) (Flavor, bool) {
	return first(s.flavors, func(f Flavor) bool { return f.ID == id })
}

// first returns the first of a list that is wanted.
func first[T any](list []T, is func(T) bool) (found T, ok bool) {
	if at := slices.IndexFunc(list, is); at >= 0 {
		return list[at], true
	}
	return found, false
}

// flavorNamed finds a flavor by its name; for an empty one, the smallest with a disk.
func (s *Nova) flavorNamed(name string) (best Flavor, found bool) {
	for _, f := range s.flavors {
		small := name == "" && f.Disk > 0 && (!found || f.RAM < best.RAM)
		if f.Name == name || small {
			best, found = f, true
		}
	}
	return best, found
}

// embeddedFlavor is the flavor inside a server.
func embeddedFlavor(c *cloud.Call, f Flavor) any {
	if !c.AtLeast(47) {
		return map[string]any{"id": f.ID, "links": bookmark(c, "flavors", f.ID)}
	}
	return map[string]any{
		"vcpus": f.VCPUs, "ram": f.RAM, "disk": f.Disk, "ephemeral": 0, "swap": 0,
		"original_name": f.Name, "extra_specs": map[string]any{},
	}
}
