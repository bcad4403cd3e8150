package cloud

import "context"

// Zone is an availability zone of servers.
type Zone struct {
	Name string
	// Available is false while none of its hosts works.
	Available bool
}

// ResolveZone finds an availability zone. The error is an [ErrUnknown] where
// there is none of that name; any other says that the zones cannot be listed.
func (c *Client) ResolveZone(ctx context.Context, name string) (Zone, error) {
	zones, err := readAll[struct {
		Name  string `json:"zoneName"`
		State struct {
			Available bool `json:"available"`
		} `json:"zoneState"`
	}](ctx, c, collection{op: "list availability zones", service: compute, path: "os-availability-zone", key: "availabilityZoneInfo"})
	if err != nil {
		return Zone{}, err
	}
	known := make([]string, 0, len(zones))
	for _, z := range zones {
		if z.Name == name {
			return Zone{Name: z.Name, Available: z.State.Available}, nil
		}
		known = append(known, z.Name)
	}
	return Zone{}, &missing{kind: "availability zone", name: name, known: known, noID: true}
}

// ResolveVolumeType finds a type of volumes by ID or name. The error is an
// [ErrUnknown] where there is no such type, and an [ErrAmbiguous] where there
// are several; any other says that the types cannot be listed.
func (c *Client) ResolveVolumeType(ctx context.Context, nameOrID string) (Resource, error) {
	types, err := readAll[Resource](ctx, c, collection{op: "list volume types", service: volume, path: "types", key: "volume_types"})
	if err != nil {
		return Resource{}, err
	}
	return pick("volume type", nameOrID, types)
}
