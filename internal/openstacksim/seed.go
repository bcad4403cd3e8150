package openstacksim

import (
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cinder"
)

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

// DefaultSeed is a cloud with the names and sizes of the contract suite's. The
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
		VolumeTypes: []string{"lab", cinder.DefaultType},
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

// throwawayKey makes a public key and drops its private half.
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

// The clouds in what [Simulator.CloudsYAML] gives.
const (
	CloudPassword   = "simulator"
	CloudCredential = "simulator-appcred"
	CloudTiny       = "simulator-tiny"
)

type cloudEntry struct {
	AuthType string         `yaml:"auth_type"`
	Auth     map[string]any `yaml:"auth"`
	Region   string         `yaml:"region_name"`
}

// CloudsYAML writes the clouds.yaml for a simulator that answers at url, such
// as http://127.0.0.1:5000: the first user's cloud by password
// ("simulator"), by application credential ("simulator-appcred") and in the
// second project ("simulator-tiny"), as far as the seed has them.
func (s *Simulator) CloudsYAML(url string) []byte {
	var user User
	s.Do(func() { user = *s.FirstUser() })
	authURL := strings.TrimSuffix(url, "/") + "/identity/v3"
	clouds := map[string]cloudEntry{}
	byPassword := func(project string) cloudEntry {
		return cloudEntry{AuthType: "password", Region: s.options.Seed.Regions[0], Auth: map[string]any{
			"auth_url": authURL, "username": user.Name, "password": user.Password, "project_name": project,
			"user_domain_name": "Default", "project_domain_name": "Default",
		}}
	}
	for i, name := range []string{CloudPassword, CloudTiny} {
		if i < len(user.Projects) {
			clouds[name] = byPassword(user.Projects[i])
		}
	}
	if len(user.ApplicationCredentials) > 0 {
		credential := user.ApplicationCredentials[0]
		clouds[CloudCredential] = cloudEntry{AuthType: "v3applicationcredential", Region: s.options.Seed.Regions[0], Auth: map[string]any{
			"auth_url": authURL, "application_credential_id": credential.ID, "application_credential_secret": credential.Secret,
		}}
	}
	text, err := yaml.Marshal(map[string]any{"clouds": clouds})
	if err != nil {
		return []byte(fmt.Sprintf("# %v\n", err))
	}
	return text
}
