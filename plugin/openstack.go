package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// openstack is the cloud that a group of package fleet works with: it turns
// Nova's servers, states and errors into the group's.
type openstack struct {
	client    *cloud.Client
	config    Config
	supply    *supply
	addresses *addressBook
	process   string // what servers say of the process that makes them

	lastListing atomic.Pointer[time.Time] // when servers were last listed
}

// newOpenStack returns a cloud whose servers can be listed and deleted. To create
// some, its supply has to look up what they are made of.
func newOpenStack(client *cloud.Client, config Config, logger hclog.Logger) *openstack {
	supply := newSupply(client, config, logger)
	return &openstack{
		client:    client,
		config:    config,
		supply:    supply,
		addresses: &addressBook{client: client, supply: supply, config: config, ports: map[string]*knownPorts{}},
	}
}

// List returns the servers that carry the group's tag.
func (o *openstack) List(ctx context.Context) ([]fleet.Server, error) {
	o.client.RereadCredentials(ctx)
	age := time.Hour
	if last := o.lastListing.Load(); last != nil {
		age = time.Since(*last)
	}
	listed, err := o.client.ListServers(ctx, o.config.Tag, age)
	if errors.Is(err, cloud.ErrPutOff) {
		return nil, fmt.Errorf("%w: %w", fleet.ErrPutOff, err)
	}
	if errors.Is(err, cloud.ErrUnfinished) {
		return nil, fmt.Errorf("%w: %w", fleet.ErrUnfinished, err)
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	o.lastListing.Store(&now)
	o.learn(ctx, listed)
	servers := make([]fleet.Server, 0, len(listed))
	for _, s := range listed {
		servers = append(servers, o.server(s))
	}
	return servers, nil
}

// learn looks up what listed servers do not say themselves.
func (o *openstack) learn(ctx context.Context, listed []cloud.Server) {
	own := slices.DeleteFunc(slices.Clone(listed), func(s cloud.Server) bool { return !o.owns(s) })
	o.addresses.learn(ctx, own)
	var images []string
	for _, s := range own {
		if s.Metadata[platformKey] == "" {
			images = append(images, s.Image)
		}
	}
	o.supply.images.learn(ctx, images)
}

// owns reports whether a server carries the owner mark.
func (o *openstack) owns(s cloud.Server) bool { return s.Metadata[ownerKey] == o.config.Tag }

// Get returns one server.
func (o *openstack) Get(ctx context.Context, id string) (fleet.Server, error) {
	s, err := o.client.GetServer(ctx, id)
	if err != nil {
		return fleet.Server{}, fleetError(err)
	}
	return o.server(s), nil
}

// Find returns the servers of this name.
func (o *openstack) Find(ctx context.Context, name string) ([]fleet.Server, error) {
	found, err := o.client.FindServers(ctx, o.config.Tag, name)
	if err != nil {
		return nil, err
	}
	servers := make([]fleet.Server, 0, len(found))
	for _, s := range found {
		servers = append(servers, o.server(s))
	}
	return servers, nil
}

// Create asks for one server.
func (o *openstack) Create(ctx context.Context, name string) (fleet.Created, error) {
	found, err := o.supply.get()
	if err != nil {
		return fleet.Created{}, createError(err)
	}
	image, err := o.supply.images.newest(ctx)
	if err != nil {
		return fleet.Created{}, createError(err)
	}
	accepted, err := o.client.CreateServer(ctx, o.spec(name, found, image))
	if errors.Is(err, cloud.ErrInvalid) || errors.Is(err, cloud.ErrConflict) {
		o.supply.doubt()
	}
	if err != nil {
		return fleet.Created{}, createError(err)
	}
	return fleet.Created{ID: accepted.ID, Request: accepted.RequestID}, nil
}

// spec describes one server of the group.
func (o *openstack) spec(name string, found resources, image cloud.Image) cloud.ServerSpec {
	server := o.config.Server
	metadata := maps.Clone(server.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[ownerKey], metadata[processKey] = o.config.Tag, o.process
	// What a later process could not tell of the server while only Nova answers.
	if p := platformOf(image); p != platformOf(cloud.Image{}) && len(metadata) < maxMetadata {
		metadata[platformKey] = p.String()
	}
	if cloud.IsID(o.config.AddressNetwork) && !found.addressTwins && len(metadata) < maxMetadata {
		metadata[networkKey] = found.addressNetwork.Name
	}
	return cloud.ServerSpec{
		Name: name, Flavor: found.flavor.ID, Image: image.ID,
		Networks: found.networkIDs(), SecurityGroups: idsOf(found.securityGroups),
		KeyName: server.KeyName, UserData: found.userData, ConfigDrive: server.ConfigDrive,
		Tags: append([]string{o.config.Tag}, server.Tags...), Metadata: metadata,
		AvailabilityZone: server.AvailabilityZone, ServerGroup: found.serverGroup.ID,
		VolumeSize: server.VolumeSize, VolumeType: server.VolumeType,
	}
}

func idsOf(found []cloud.Resource) []string {
	ids := make([]string, 0, len(found))
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	return slices.Clip(ids)
}

// Delete asks for a deletion.
func (o *openstack) Delete(ctx context.Context, id string) error {
	return fleetError(o.client.DeleteServer(ctx, id))
}

// ForceDelete asks for a deletion in any state.
func (o *openstack) ForceDelete(ctx context.Context, id string) error {
	return fleetError(o.client.ForceDeleteServer(ctx, id))
}

// Unlock lets a locked server be deleted.
func (o *openstack) Unlock(ctx context.Context, id string) error {
	return fleetError(o.client.UnlockServer(ctx, id))
}

// server turns one of Nova's servers into the group's.
func (o *openstack) server(s cloud.Server) fleet.Server {
	server := fleet.Server{
		ID: s.ID, Name: s.Name, Created: s.Created, Image: s.Image, Platform: s.Metadata[platformKey],
		Owned: o.owns(s), Process: s.Metadata[processKey],
		Phase:  phaseOf(s.Status, s.TaskState, s.Fault),
		Detail: detailOf(s),
	}
	var known bool
	server.Addresses, known = o.addresses.choose(s)
	if server.Phase == fleet.Running {
		switch internal, external := pick(server.Addresses, o.config.ipv6()); {
		case !known:
			server.Phase = fleet.Unknown
			server.Detail += ", on which network its addresses are is not known yet"
		case internal == "":
			// Without an address the runner would connect to itself.
			server.Phase = fleet.Building
			server.Detail += ", without an address to connect to: address_family is " + o.config.AddressFamily
		case external == "" && o.config.WaitForFloatingIP:
			server.Phase = fleet.Building
			server.Detail += ", without a floating address yet"
		}
	}
	if server.Phase == fleet.Broken && s.Fault != "" {
		server.Fault = capacityError(cloud.FaultKind(s.Fault))
		if server.Fault != nil {
			server.Detail += " (" + server.Fault.Error() + ")"
		}
	}
	return server
}

// fleetError adds the meaning that a group gives to an error about one server.
func fleetError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cloud.ErrNotFound):
		return fmt.Errorf("%w: %w", fleet.ErrGone, err)
	case errors.Is(err, cloud.ErrConflict):
		return fmt.Errorf("%w: %w", fleet.ErrLocked, err)
	case errors.Is(err, cloud.ErrForbidden):
		return fmt.Errorf("%w: %w", fleet.ErrForbidden, err)
	case cloud.Unanswered(err):
		return fmt.Errorf("%w: %w", fleet.ErrUnanswered, err)
	default:
		return err
	}
}

// createError adds the meaning that a group gives to a failed creation. A
// conflict or a thing not found is not about the server here.
func createError(err error) error {
	switch {
	case cloud.Doubtful(err):
		return fmt.Errorf("%w: %w", fleet.ErrDoubtful, err)
	case cloud.Throttled(err):
		return fmt.Errorf("%w: %w", fleet.ErrThrottled, err)
	case errors.Is(err, cloud.ErrTransient), errors.Is(err, cloud.ErrUnauthorized):
		return fmt.Errorf("%w: %w", fleet.ErrBusy, err)
	}
	if full := capacityError(err); full != nil {
		return fmt.Errorf("%w: %w", full, err)
	}
	return err
}

// capacityError returns what a lack of room is called by a group; nil for any
// other error.
func capacityError(err error) error {
	switch {
	case errors.Is(err, cloud.ErrQuota):
		return fleet.ErrQuota
	case errors.Is(err, cloud.ErrNoHost):
		return fleet.ErrNoRoom
	default:
		return nil
	}
}

// VersionInfo describes the executable, for the host and for "version".
func VersionInfo(version, revision string) fleetingplugin.VersionInfo {
	return versionInfo(options{version: version, revision: revision})
}

func versionInfo(o options) fleetingplugin.VersionInfo {
	v := fleetingplugin.VersionInfo{Name: "fleeting-plugin-openstack", Version: o.version, Revision: o.revision}
	if v.Version == "" {
		v.Version = "dev"
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision" && v.Revision == "":
			v.Revision = setting.Value
		case setting.Key == "vcs.time":
			v.BuiltAt = setting.Value
		}
	}
	return v
}

// phaseOf maps Nova's status and task state to what a group does about it. The
// task state comes first: while Nova deletes a server its status stays what it
// was.
func phaseOf(status, taskState, fault string) fleet.Phase {
	switch taskState {
	case "deleting", "soft-deleting":
		return fleet.Deleting
	}
	switch status {
	case "BUILD":
		return fleet.Building
	case "ACTIVE", "PASSWORD", "MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE":
		return fleet.Running
	case "SOFT_DELETED":
		return fleet.Kept
	case "DELETED":
		return fleet.Gone
	case "ERROR":
		return errorPhase(fault)
	case "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE":
		return fleet.Broken
	default:
		// UNKNOWN is what a cell that is down gives; a status that this
		// version does not know says nothing either. A server in REBOOT,
		// HARD_REBOOT or REBUILD comes back, or stays there for ever.
		return fleet.Unknown
	}
}

// errorPhase waits a moment before it gives up a server that its host lost:
// an evacuation or a migration may bring it back.
func errorPhase(fault string) fleet.Phase {
	text := strings.ToLower(fault)
	if strings.Contains(text, "evacuat") || strings.Contains(text, "migrat") {
		return fleet.Suspect
	}
	return fleet.Broken
}

// detailOf says why a server is not usable, in Nova's words.
func detailOf(s cloud.Server) string {
	detail := s.Status
	if s.TaskState != "" {
		detail += " (" + s.TaskState + ")"
	}
	if s.Fault != "" {
		detail += ": " + strings.TrimSpace(s.Fault)
	}
	return detail
}

// slogger lets the parts of the plugin, which know only log/slog, write to the
// logger that fleeting gives.
func slogger(logger hclog.Logger) *slog.Logger { return slog.New(hclogHandler{logger: logger}) }

// hclogHandler passes records of log/slog on.
type hclogHandler struct {
	logger hclog.Logger
	attrs  []any
	group  string
}

// Enabled implements slog.Handler.
func (h hclogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return hclogLevel(level) >= h.logger.GetLevel()
}

// Handle implements slog.Handler.
func (h hclogHandler) Handle(_ context.Context, record slog.Record) error {
	args := append([]any{}, h.attrs...)
	record.Attrs(func(a slog.Attr) bool {
		args = append(args, h.group+a.Key, a.Value.Resolve().Any())
		return true
	})
	h.logger.Log(hclogLevel(record.Level), record.Message, args...)
	return nil
}

// WithAttrs implements slog.Handler.
func (h hclogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	args := append([]any{}, h.attrs...)
	for _, a := range attrs {
		args = append(args, h.group+a.Key, a.Value.Resolve().Any())
	}
	h.attrs = args
	return h
}

// WithGroup implements slog.Handler.
func (h hclogHandler) WithGroup(name string) slog.Handler {
	h.group += name + "."
	return h
}

func hclogLevel(level slog.Level) hclog.Level {
	switch {
	case level >= slog.LevelError:
		return hclog.Error
	case level >= slog.LevelWarn:
		return hclog.Warn
	case level >= slog.LevelInfo:
		return hclog.Info
	default:
		return hclog.Debug
	}
}
