package openstacksim

import (
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Unlimited as a quota means no limit.
const Unlimited = -1

// Quota is what a project may have at once. RAM is in MiB, Gigabytes in GiB.
type Quota struct {
	Instances, Cores, RAM            int
	Ports, FloatingIPs               int
	Volumes, Gigabytes               int
	KeyPairs                         int
	ServerGroups, ServerGroupMembers int
	MetadataItems                    int
}

// Project owns servers and all else.
type Project struct {
	// ID is chosen when empty.
	ID, Name string
	Quota    Quota
}

// User may act in some projects, as a member.
type User struct {
	// ID is chosen when empty.
	ID, Name, Password string
	// Projects are names.
	Projects []string
	// ApplicationCredentials act in their project without the password.
	ApplicationCredentials []ApplicationCredential
}

// ApplicationCredential stands for a user in one project.
type ApplicationCredential struct {
	// ID is chosen when empty.
	ID, Name, Secret, Project string
	Description               string
	// AccessRules restrict what it may call; nil does not.
	AccessRules []AccessRule
	revoked     bool
	expires     time.Time
}

// Flavor is a size of servers. RAM is in MiB, Disk in GiB.
type Flavor struct {
	// ID is chosen when empty.
	ID, Name         string
	VCPUs, RAM, Disk int
}

// Host is where servers run; Zone is its availability zone.
type Host struct {
	Name, Zone string
	VCPUs, RAM int
}

// KeyPair belongs to a user, here the first one that there is.
type KeyPair struct {
	Name, PublicKey string
	created         time.Time
	user            string
}

// ServerGroup places servers. Policy is affinity, anti-affinity or one of these after soft-.
type ServerGroup struct {
	// ID is chosen when empty.
	ID, Name, Policy string
	// Project is the name of its owner.
	Project string
	members []string
	user    string
}

// Network is a network with its subnets.
type Network struct {
	// ID is chosen when empty.
	ID, Name string
	// Project is the name of the owner; empty means nobody's that the users know.
	Project string
	// Shared lets all projects use it; External offers floating IPs.
	Shared, External bool
	// IPv4 and IPv6 are the ranges of its subnets; invalid ones mean no subnet.
	IPv4, IPv6 netip.Prefix
	// DNS are the name servers of the IPv4 subnet.
	DNS []string
}

// SecurityGroup is one of a project, by the project's name. The rules that
// every new group has need no entry.
type SecurityGroup struct {
	Name, Project, Description string
	Rules                      []SecurityRule
}

// SecurityRule lets one port of a protocol through, from or to Remote (a range
// of addresses). Ethertype is IPv4 or IPv6.
type SecurityRule struct {
	Ingress                     bool
	Ethertype, Protocol, Remote string
	Port                        int
	own                         bool // from the group's own members
}

// Seed is what a cloud begins with.
type Seed struct {
	Projects       []Project
	Users          []User
	Flavors        []Flavor
	Hosts          []Host
	Images         []Image
	KeyPairs       []KeyPair
	ServerGroups   []ServerGroup
	Networks       []Network
	SecurityGroups []SecurityGroup
	VolumeTypes    []string
	// Regions of the catalogue, all of them this cloud.
	Regions []string
}

// The names in the default seed.
const (
	DefaultUser       = "fleeting"
	DefaultPassword   = "fleeting-password"
	DefaultProject    = "fleeting"
	TinyProject       = "tiny"
	DefaultRegion     = "RegionOne"
	DefaultCredential = "fleeting-plugin"
	DefaultSecret     = "fleeting-secret"
)

// DefaultSeed is a cloud like openstack-lab's: the same names and sizes. The
// addresses of its networks are on loopback, so that servers can answer there.
func DefaultSeed() Seed {
	const room = 16 << 20 // 16 TiB of RAM, in MiB
	generous := Quota{
		Instances: 2000, Cores: Unlimited, RAM: Unlimited, Ports: 10000, FloatingIPs: 500,
		Volumes: 2000, Gigabytes: 100000, KeyPairs: 100, ServerGroups: 100, ServerGroupMembers: 2000, MetadataItems: 128,
	}
	tiny := Quota{
		Instances: 2, Cores: 4, RAM: 4096, Ports: 500, FloatingIPs: 1,
		Volumes: 1, Gigabytes: 5, KeyPairs: 100, ServerGroups: 10, ServerGroupMembers: 10, MetadataItems: 128,
	}
	return Seed{
		Projects: []Project{{Name: DefaultProject, Quota: generous}, {Name: TinyProject, Quota: tiny}},
		Users: []User{{
			Name: DefaultUser, Password: DefaultPassword, Projects: []string{DefaultProject, TinyProject},
			ApplicationCredentials: []ApplicationCredential{{Name: DefaultCredential, Secret: DefaultSecret, Project: DefaultProject}},
		}},
		Flavors: []Flavor{
			{Name: "m1.nodisk", VCPUs: 1, RAM: 512},
			{Name: "m1.small", VCPUs: 1, RAM: 512, Disk: 1},
			{Name: "m1.large", VCPUs: 4, RAM: 8192, Disk: 80},
			{Name: "m1.toobig", VCPUs: 1, RAM: 64 << 20, Disk: 1},
		},
		Hosts: []Host{
			{Name: "compute-a", Zone: "az-a", VCPUs: 32000, RAM: room},
			{Name: "compute-b", Zone: "az-b", VCPUs: 32000, RAM: room},
		},
		Images:       defaultImages(),
		KeyPairs:     []KeyPair{{Name: "fleeting", PublicKey: throwawayKey()}},
		ServerGroups: []ServerGroup{{Name: "runners", Policy: "soft-anti-affinity", Project: DefaultProject}},
		Networks: []Network{
			{Name: "private", Shared: true, IPv4: netip.MustParsePrefix("127.10.0.0/16"), IPv6: netip.MustParsePrefix("fd00:10::/64"), DNS: []string{"127.10.0.2"}},
			{Name: "second", Project: DefaultProject, IPv4: netip.MustParsePrefix("127.20.0.0/16")},
			{Name: "public", External: true, IPv4: netip.MustParsePrefix("127.30.0.0/16")},
		},
		SecurityGroups: []SecurityGroup{
			{Name: "ssh", Project: DefaultProject, Description: "TCP 22 from everywhere", Rules: []SecurityRule{
				{Ingress: true, Ethertype: "IPv4", Protocol: "tcp", Port: 22, Remote: "0.0.0.0/0"},
				{Ingress: true, Ethertype: "IPv6", Protocol: "tcp", Port: 22, Remote: "::/0"},
			}},
		},
		VolumeTypes: []string{"lab", cinderDefault},
		Regions:     []string{DefaultRegion},
	}
}

func defaultImages() []Image {
	ubuntu := map[string]string{"os_distro": "ubuntu", "os_version": "24.04"}
	return []Image{
		{Name: "Ubuntu 24.04", Age: 3 * time.Minute, Properties: ubuntu},
		{Name: "Ubuntu 24.04 arm64", Age: 2 * time.Minute, Properties: map[string]string{"architecture": "aarch64", "os_distro": "ubuntu"}},
		{Name: "Windows Server 2022", Age: 2 * time.Minute, Properties: map[string]string{"os_type": "windows", "os_distro": "windows"}},
		{Name: "Needs 20 GB", Age: 2 * time.Minute, MinDisk: 20, MinRAM: 1024},
		{Name: "Ubuntu 24.04", Age: time.Minute, Properties: ubuntu},
	}
}

// throwawayKey makes a public key whose private half nobody keeps.
func throwawayKey() string {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		return ""
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// plant fills the cloud.
func (s *Simulator) plant(seed Seed) error {
	if len(seed.Users) == 0 || len(seed.Projects) == 0 || len(seed.Regions) == 0 {
		return fmt.Errorf("openstacksim: a seed needs a project, a user and a region")
	}
	for _, p := range seed.Projects {
		p.ID = orElse(p.ID, s.newHex)
		s.projects = append(s.projects, &p)
		s.securityGroups = append(s.securityGroups, securityGroup{
			SecurityGroup: SecurityGroup{Name: "default", Project: p.ID, Description: "Default security group"},
			id:            s.newID(), created: s.present,
		})
	}
	for _, u := range seed.Users {
		u.ID = orElse(u.ID, s.newHex)
		u.ApplicationCredentials = append([]ApplicationCredential(nil), u.ApplicationCredentials...)
		for i := range u.ApplicationCredentials {
			u.ApplicationCredentials[i].ID = orElse(u.ApplicationCredentials[i].ID, s.newHex)
		}
		s.users = append(s.users, &u)
	}
	for _, f := range seed.Flavors {
		f.ID = orElse(f.ID, s.newID)
		s.flavors = append(s.flavors, f)
	}
	slices.SortFunc(s.flavors, func(a, b Flavor) int { return strings.Compare(a.ID, b.ID) })
	s.hosts = append(s.hosts, seed.Hosts...)
	for _, image := range seed.Images {
		s.plantImage(image)
	}
	for _, k := range seed.KeyPairs {
		k.created, k.user = s.present, s.users[0].ID
		s.keyPairs = append(s.keyPairs, k)
	}
	for _, g := range seed.ServerGroups {
		g.ID = orElse(g.ID, s.newID)
		g.Project, g.user = s.projectID(g.Project), s.users[0].ID
		s.serverGroups = append(s.serverGroups, &g)
	}
	for _, n := range seed.Networks {
		if err := s.plantNetwork(n); err != nil {
			return err
		}
	}
	for _, g := range seed.SecurityGroups {
		g.Project = s.projectID(g.Project)
		s.securityGroups = append(s.securityGroups, securityGroup{SecurityGroup: g, id: s.newID(), created: s.present})
	}
	s.volumeTypes = append(s.volumeTypes, seed.VolumeTypes...)
	return nil
}

// projectID finds a project by its name; an unknown name gives an owner that nobody is.
func (s *Simulator) projectID(name string) string {
	for _, p := range s.projects {
		if p.Name == name {
			return p.ID
		}
	}
	return "00000000000000000000000000000000"
}

// project finds a project by its ID.
func (s *Simulator) project(id string) *Project {
	for _, p := range s.projects {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func orElse(value string, choose func() string) string {
	if value != "" {
		return value
	}
	return choose()
}
