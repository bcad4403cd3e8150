package cloud

import "context"

// Limits are what a project may have and has, -1 meaning no limit.
type Limits struct {
	Instances, InstancesUsed int
	Cores, CoresUsed         int
	RAM, RAMUsed             int // MiB
}

// Limits asks Nova for the limits of the project.
func (c *Client) Limits(ctx context.Context) (Limits, error) {
	var answer struct {
		Limits struct {
			Absolute struct {
				Instances     int `json:"maxTotalInstances"`
				InstancesUsed int `json:"totalInstancesUsed"`
				Cores         int `json:"maxTotalCores"`
				CoresUsed     int `json:"totalCoresUsed"`
				RAM           int `json:"maxTotalRAMSize"`
				RAMUsed       int `json:"totalRAMUsed"`
			} `json:"absolute"`
		} `json:"limits"`
	}
	err := c.get(ctx, "read the project's limits", compute, "limits", &answer)
	return Limits(answer.Limits.Absolute), err
}

// Room is how many more servers of a flavor fit, and which limit says so; -1
// and nothing when none does.
func (l Limits) Room(flavor Flavor) (room int, limit string) {
	room = -1
	for _, part := range []struct {
		name              string
		most, used, needs int
	}{
		{"instances", l.Instances, l.InstancesUsed, 1},
		{"cores", l.Cores, l.CoresUsed, flavor.VCPUs},
		{"ram", l.RAM, l.RAMUsed, flavor.RAM},
	} {
		if part.most < 0 || part.needs <= 0 {
			continue
		}
		if fits := max(part.most-part.used, 0) / part.needs; room < 0 || fits < room {
			room, limit = fits, part.name
		}
	}
	return room, limit
}
