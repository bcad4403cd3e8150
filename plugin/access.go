package plugin

// AccessRule is one access rule of an application credential, in the form of
// Keystone's API.
type AccessRule struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
}

// AccessRules are all that the plugin needs an application credential to
// allow, for those who restrict theirs. It never needs an unrestricted one.
func AccessRules() []AccessRule {
	return []AccessRule{
		{"compute", "GET", "/v2.1/"},
		{"compute", "GET", "/v2.1/flavors/detail"},
		{"compute", "GET", "/v2.1/servers/detail"},
		{"compute", "GET", "/v2.1/servers/*"},
		{"compute", "GET", "/v2.1/servers"}, // while Neutron is down, as the next two
		{"compute", "GET", "/v2.1/servers/*/metadata"},
		{"compute", "GET", "/v2.1/servers/*/ips"},
		{"compute", "POST", "/v2.1/servers"},
		{"compute", "DELETE", "/v2.1/servers/*"},
		{"compute", "POST", "/v2.1/servers/*/action"},    // unlock and forceDelete
		{"compute", "GET", "/v2.1/os-keypairs"},          // with server.key_name
		{"compute", "GET", "/v2.1/os-server-groups"},     // with server.server_group
		{"compute", "GET", "/v2.1/os-availability-zone"}, // with server.availability_zone
		{"compute", "GET", "/v2.1/limits"},               // for the commands plan and check
		{"image", "GET", "/v2/images"},
		{"image", "GET", "/v2/images/*"},
		{"network", "GET", "/v2.0/networks"},
		{"network", "GET", "/v2.0/subnets"},         // for the command check
		{"network", "GET", "/v2.0/security-groups"}, // with server.security_groups
		{"network", "GET", "/v2.0/ports"},           // with two networks of one name
		{"volumev3", "GET", "/v3/*/types"},          // with server.volume_type
	}
}
