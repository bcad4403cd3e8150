package openstacksim

func (s *Simulator) listFlavors(c *call) (*answer, error) {
	views := []any{}
	for _, f := range s.flavors {
		view := map[string]any{"id": f.ID, "name": f.Name, "links": novaLinks(c, "flavors", f.ID)}
		if c.micro.least(55) {
			view["description"] = nil
		}
		views = append(views, view)
	}
	return ok(map[string]any{"flavors": views})
}

func (s *Simulator) detailFlavors(c *call) (*answer, error) {
	views := []any{}
	for _, f := range s.flavors {
		views = append(views, flavorView(c, f))
	}
	return ok(map[string]any{"flavors": views})
}

func (s *Simulator) showFlavor(c *call) (*answer, error) {
	for _, f := range s.flavors {
		if f.ID == c.arg("id") {
			return ok(map[string]any{"flavor": flavorView(c, f)})
		}
	}
	return nil, notFound("Flavor %s could not be found.", c.arg("id"))
}

func (s *Simulator) showExtraSpecs(c *call) (*answer, error) {
	if _, found := s.findFlavor(c.arg("id")); !found {
		return nil, notFound("Flavor %s could not be found.", c.arg("id"))
	}
	return ok(map[string]any{"extra_specs": map[string]any{}})
}

func flavorView(c *call, f Flavor) map[string]any {
	view := map[string]any{
		"id": f.ID, "name": f.Name, "ram": f.RAM, "disk": f.Disk, "vcpus": f.VCPUs, "swap": "",
		"OS-FLV-EXT-DATA:ephemeral": 0, "OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true,
		"rxtx_factor": 1.0, "links": novaLinks(c, "flavors", f.ID),
	}
	if c.micro.least(55) {
		view["description"] = nil
	}
	if c.micro.least(61) {
		view["extra_specs"] = map[string]any{}
	}
	if c.micro.least(75) {
		view["swap"] = 0
	}
	return view
}

func (s *Simulator) findFlavor(id string) (Flavor, bool) {
	for _, f := range s.flavors {
		if f.ID == id {
			return f, true
		}
	}
	return Flavor{}, false
}

// embeddedFlavor is the flavor inside a server.
func embeddedFlavor(c *call, f Flavor) any {
	if !c.micro.least(47) {
		return map[string]any{"id": f.ID, "links": bookmark(c, "flavors", f.ID)}
	}
	return map[string]any{
		"vcpus": f.VCPUs, "ram": f.RAM, "disk": f.Disk, "ephemeral": 0, "swap": 0,
		"original_name": f.Name, "extra_specs": map[string]any{},
	}
}
