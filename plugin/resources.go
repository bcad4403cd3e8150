package plugin

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

// resources are what a configuration names, found in the cloud. What was not
// found is empty.
type resources struct {
	flavor         cloud.Flavor
	image          cloud.Image
	networks       []cloud.Network
	addressNetwork cloud.Network // the one to connect on
	addressTwins   bool          // another of the networks has its name
	securityGroups []cloud.Resource
	serverGroup    cloud.Resource
	keyPair        string
	zone           string
	volumeType     cloud.Resource
	userData       []byte
	// doubts are notes: what could not be looked at, or works on some clouds only.
	doubts []Finding
}

// networkIDs are those of the networks.
func (r resources) networkIDs() []string {
	ids := make([]string, 0, len(r.networks))
	for _, n := range r.networks {
		ids = append(ids, n.ID)
	}
	return slices.Clip(ids)
}

// resolve finds everything that a configuration names, gives what it found, and
// reports all that it does not find. The look-ups run side by side. The errors
// are the cloud's, and say nothing of a setting.
func resolve(ctx context.Context, client *cloud.Client, config Config, logger hclog.Logger) (resources, problems, []error) {
	r := resolver{client: client, config: config}
	lookups := []func(context.Context, *outcome) error{
		r.userData, r.flavor, r.image, r.networks, r.securityGroups, r.serverGroup, r.keyPair, r.zone, r.volumeType,
	}
	outcomes, failed := make([]outcome, len(lookups)), make([]error, len(lookups))
	var pool sync.WaitGroup
	for i, lookup := range lookups {
		pool.Go(func() {
			defer guard("resolve", logger, &failed[i])
			failed[i] = lookup(ctx, &outcomes[i])
		})
	}
	pool.Wait()
	var wrong problems
	for _, o := range outcomes {
		wrong = append(wrong, o.problems...)
		r.found.doubts = append(r.found.doubts, o.doubts...)
	}
	r.fit(&wrong)
	r.addressNetwork(&wrong)
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	return r.found, wrong, failed
}

// resolver is where look-ups leave what they find, each in fields of its own.
type resolver struct {
	client *cloud.Client
	config Config
	found  resources
}

// outcome is what one look-up says besides.
type outcome struct {
	problems
	doubts []Finding
}

// note keeps a problem with a setting, and passes other errors on.
func (o *outcome) note(key string, err error) error {
	if errors.Is(err, cloud.ErrNotFound) || errors.Is(err, cloud.ErrAmbiguous) || errors.Is(err, cloud.ErrInvalid) {
		o.add(key, "%s", err.Error())
		return nil
	}
	return err
}

// noteKnown is note for what Nova would tell later as well: only a name that is
// not in a listing is a problem. Some credentials may not list.
func (o *outcome) noteKnown(key string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, cloud.ErrUnknown), errors.Is(err, cloud.ErrAmbiguous):
		o.add(key, "%s", err.Error())
	default:
		o.doubt(key, "not looked at: %s", err)
	}
}

func (o *outcome) doubt(key, format string, args ...any) {
	o.doubts = append(o.doubts, note(key, format, args...)...)
}

func (r *resolver) userData(_ context.Context, out *outcome) error {
	data, problem := r.config.Server.loadUserData()
	if problem != nil {
		out.problems = append(out.problems, *problem)
	}
	r.found.userData = data
	return nil
}

func (r *resolver) flavor(ctx context.Context, out *outcome) (err error) {
	if r.config.Server.Flavor == "" {
		return nil // a mistake that is reported already, as below
	}
	r.found.flavor, err = r.client.ResolveFlavor(ctx, r.config.Server.Flavor)
	return out.note("server.flavor", err)
}

func (r *resolver) image(ctx context.Context, out *outcome) (err error) {
	if r.config.Server.Image == "" {
		return nil
	}
	r.found.image, err = r.client.ResolveImage(ctx, r.config.Server.Image)
	if r.found.image.Passed != "" {
		out.doubt("server.image", "%s", r.found.image.Passed)
	}
	return out.note("server.image", err)
}

func (r *resolver) networks(ctx context.Context, out *outcome) error {
	const key = "server.networks"
	for _, name := range r.config.Server.Networks {
		found, err := r.client.ResolveNetwork(ctx, name)
		if err := out.note(key, err); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		r.found.networks = append(r.found.networks, found)
		if found.Closed {
			out.doubt(key, "%s is external and not shared; most clouds put no servers of users there", found)
		}
	}
	return nil
}

func (r *resolver) securityGroups(ctx context.Context, out *outcome) error {
	for _, name := range r.config.Server.SecurityGroups {
		found, err := r.client.ResolveSecurityGroup(ctx, name)
		if err := out.note("server.security_groups", err); err != nil {
			return err
		}
		if err == nil {
			r.found.securityGroups = append(r.found.securityGroups, found)
		}
	}
	return nil
}

func (r *resolver) serverGroup(ctx context.Context, out *outcome) (err error) {
	if r.config.Server.ServerGroup == "" {
		return nil
	}
	r.found.serverGroup, err = r.client.ResolveServerGroup(ctx, r.config.Server.ServerGroup)
	return out.note("server.server_group", err)
}

func (r *resolver) keyPair(ctx context.Context, out *outcome) error {
	name := r.config.Server.KeyName
	if name == "" {
		return nil
	}
	err := r.client.CheckKeyPair(ctx, name)
	if err == nil {
		r.found.keyPair = name
	}
	return out.note("server.key_name", err)
}

func (r *resolver) zone(ctx context.Context, out *outcome) error {
	const key = "server.availability_zone"
	name := r.config.Server.AvailabilityZone
	if name == "" || strings.Contains(name, ":") {
		return nil
	}
	zone, err := r.client.ResolveZone(ctx, name)
	out.noteKnown(key, err)
	r.found.zone = zone.Name
	if err == nil && !zone.Available {
		out.doubt(key, "%s is not available at present", name)
	}
	return nil
}

func (r *resolver) volumeType(ctx context.Context, out *outcome) (err error) {
	if r.config.Server.VolumeType == "" {
		return nil
	}
	r.found.volumeType, err = r.client.ResolveVolumeType(ctx, r.config.Server.VolumeType)
	out.noteKnown("server.volume_type", err)
	return nil
}

// fit holds what the image needs against what servers get. Nova does the same,
// and refuses every creation. What was not found is wrong already.
func (r *resolver) fit(wrong *problems) {
	image, flavor, volume := r.found.image, r.found.flavor, r.config.Server.VolumeSize
	if volume > 0 && volume < image.MinDisk {
		wrong.add("server.volume_size", "is %d GiB, but the image needs %d", volume, image.MinDisk)
	}
	if flavor.ID == "" {
		return
	}
	if volume == 0 && flavor.Disk > 0 && flavor.Disk < image.MinDisk {
		wrong.add("server.flavor", "%s has a disk of %d GiB, but the image needs %d; take a larger flavor or set server.volume_size",
			flavor.Name, flavor.Disk, image.MinDisk)
	}
	if flavor.RAM < image.MinRAM {
		wrong.add("server.flavor", "%s has %d MiB of RAM, but the image needs %d", flavor.Name, flavor.RAM, image.MinRAM)
	}
}

// addressNetwork finds the network to connect on among those of the servers,
// whichever of the two is given by name and whichever by ID.
func (r *resolver) addressNetwork(wrong *problems) {
	wanted, networks := r.config.AddressNetwork, r.found.networks
	at := slices.IndexFunc(networks, func(n cloud.Network) bool {
		return n.ID == wanted || n.Name == wanted || wanted == "" && len(r.config.Server.Networks) == 1
	})
	if byID := slices.IndexFunc(networks, func(n cloud.Network) bool { return n.ID == wanted }); byID >= 0 {
		at = byID
	}
	if at < 0 {
		if names := r.config.Server.Networks; wanted != "" && len(names) == len(networks) && len(names) > 0 {
			wrong.add("address_network", "must be one of server.networks, not %q", wanted)
		}
		return
	}
	r.found.addressNetwork = networks[at]
	r.found.addressTwins = slices.ContainsFunc(networks, func(n cloud.Network) bool {
		return n.Name == networks[at].Name && n.ID != networks[at].ID
	})
}

// platform is what an image says about the servers made of it, in the words
// of Go.
type platform struct{ os, arch string }

// platformOf reads os_type and architecture; linux and amd64 unless they say
// otherwise.
func platformOf(image cloud.Image) platform {
	p := platform{os: "linux", arch: "amd64"}
	if os := strings.ToLower(image.OSType); platformName.MatchString(os) {
		p.os = os
	}
	if arch := strings.ToLower(image.Architecture); platformName.MatchString(arch) {
		p.arch = arch
	}
	switch p.arch {
	case "x86_64", "x64":
		p.arch = "amd64"
	case "aarch64", "armv8", "arm64v8":
		p.arch = "arm64"
	case "i386", "i486", "i586", "i686", "x86":
		p.arch = "386"
	case "armv7l", "armv7", "armhf":
		p.arch = "arm"
	}
	return p
}

// String is the form that servers carry in their metadata: "linux/amd64".
func (p platform) String() string { return p.os + "/" + p.arch }

func parsePlatform(text string) (platform, bool) {
	os, arch, _ := strings.Cut(text, "/")
	return platform{os: os, arch: arch}, platformName.MatchString(os) && platformName.MatchString(arch)
}

// platformName is what a system or an architecture may be called; an image may
// say anything.
var platformName = regexp.MustCompile(`^[a-z0-9_]{1,20}$`)

// complete fills in what connector_config leaves open.
func (p platform) complete(c provider.ConnectorConfig) provider.ConnectorConfig {
	if c.OS == "" {
		c.OS = p.os
	}
	if c.Arch == "" {
		c.Arch = p.arch
	}
	if c.Protocol == "" {
		c.Protocol = provider.ProtocolSSH
		if c.OS == "windows" {
			c.Protocol = provider.ProtocolWinRM
		}
	}
	if c.ProtocolPort == 0 {
		c.ProtocolPort = provider.DefaultProtocolPorts[c.Protocol]
	}
	return c
}

// maxUserData is Nova's limit, in characters of base64.
const maxUserData = 65535

// loadUserData returns the user data to create servers with, compressed if it
// is too long otherwise.
func (s *ServerConfig) loadUserData() ([]byte, *Problem) {
	key, data := "server.user_data", []byte(s.UserData)
	if s.UserDataFile != "" {
		key = "server.user_data_file"
		content, err := os.ReadFile(s.UserDataFile)
		if err != nil {
			return nil, &Problem{key, err.Error()}
		}
		// An editor's mark would hide the first line, which says what it is.
		if data, err = textfile.Unmarked(content); err != nil {
			return nil, &Problem{key, fmt.Sprintf("%s: %v", s.UserDataFile, err)}
		}
	}
	if base64.StdEncoding.EncodedLen(len(data)) <= maxUserData {
		return data, nil
	}
	if !compressible(data) {
		return nil, &Problem{key, fmt.Sprintf("has %d bytes; Nova takes %d, and this format may not be compressed",
			len(data), base64.StdEncoding.DecodedLen(maxUserData/4*4))}
	}
	packed := compress(data)
	if base64.StdEncoding.EncodedLen(len(packed)) > maxUserData {
		return nil, &Problem{key, fmt.Sprintf("has %d bytes, %d compressed; Nova takes %d",
			len(data), len(packed), base64.StdEncoding.DecodedLen(maxUserData/4*4))}
	}
	return packed, nil
}

// compressible tells the formats that cloud-init unpacks. Ignition (JSON)
// reads no gzip from user data, and what is compressed already must not be
// compressed twice.
func compressible(data []byte) bool {
	trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff")
	return !bytes.HasPrefix(trimmed, []byte("{")) && !bytes.HasPrefix(data, []byte{0x1f, 0x8b})
}

// compress gives the same bytes for the same data.
func compress(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(data)                                  // a buffer does not fail
	_ = w.Close()
	return b.Bytes()
}

// hidden are the texts of servers that no message may show. What is wrong with
// user data is said elsewhere.
func (s *ServerConfig) hidden() []string {
	data, _ := s.loadUserData()
	return append(slices.Collect(maps.Values(s.Metadata)), s.UserData, string(data))
}
