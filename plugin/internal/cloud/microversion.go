package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// Microversion is a version of Nova's API within 2.x. The zero value is none.
type Microversion struct{ minor int }

// String returns it as Nova writes it, for example "2.52".
func (m Microversion) String() string { return "2." + strconv.Itoa(m.minor) }

// IsZero reports whether none was negotiated.
func (m Microversion) IsZero() bool { return m.minor == 0 }

// Bounds of what is asked for. Nova 2.52 (Pike) brought tags at creation,
// 2.67 (Stein) volume types, and 2.96 (2024.1) is the newest that this package
// was checked against: later ones may take fields away.
const (
	minorTags       = 52
	minorVolumeType = 67
	minorCeiling    = 96
)

// negotiate chooses the microversion: the newest that both sides know.
func (c *Client) negotiate(ctx context.Context, volumeType bool) error {
	need, why := minorTags, "server tags"
	if volumeType {
		need, why = minorVolumeType, "server.volume_type"
	}
	var document struct {
		Version struct {
			Version string `json:"version"`
			Status  string `json:"status"`
		} `json:"version"`
	}
	err := c.get(ctx, "read the version of the compute service", computeRoot, "", &document)
	highest, parsed := parseMinor(document.Version.Version)
	var failed *Error
	switch {
	case errors.As(err, &failed) && (failed.Status == http.StatusNotFound || failed.Status == http.StatusMultipleChoices):
		// No version document, or one behind a proxy: ask for what is needed
		// and let Nova refuse it.
		highest = need
	case err != nil:
		return err
	case !parsed:
		return c.tooOld(why, need)
	}
	if highest < need {
		return fmt.Errorf("%w: the compute service offers microversion 2.%d at most, but %s need 2.%d",
			ErrUnsupported, highest, why, need)
	}
	c.need = need
	c.minor.Store(int32(min(highest, minorCeiling)))
	if wanted := c.session.wanted; !wanted.IsZero() {
		if wanted.minor < need || wanted.minor > highest {
			return fmt.Errorf("%w: clouds.yaml sets compute_default_microversion to %s, but the compute service offers 2.%d at most, and %s need 2.%d",
				ErrUnsupported, wanted, highest, why, need)
		}
		c.need = wanted.minor
		c.minor.Store(int32(wanted.minor)) //nolint:gosec // 96 at most
	}
	return nil
}

// mostOffered is how Nova says which microversions it has, when it refuses one.
var mostOffered = regexp.MustCompile(`[Mm]aximum is 2\.(\d+)`)

// lower goes on with an older microversion where Nova does not have the one that was
// asked for any more: it was put back to an older release, or is being upgraded one
// process after the other. Nova has done nothing then.
func (c *Client) lower(ctx context.Context, failed *Error) bool {
	match := mostOffered.FindStringSubmatch(failed.Message)
	if failed.Status != http.StatusNotAcceptable || match == nil {
		return false
	}
	most, err := strconv.Atoi(match[1])
	now := c.minor.Load()
	if err != nil || most < c.need || most >= int(now) {
		return false
	}
	if c.minor.CompareAndSwap(now, int32(most)) { //nolint:gosec // less than now
		c.log.WarnContext(ctx, "the compute service offers an older microversion than before", "microversion", c.Microversion().String())
	}
	return true
}

// tooOld is the error for a compute API without microversions, which is that of
// an old Nova or the legacy one of any.
func (c *Client) tooOld(why string, need int) error {
	base, err := c.session.endpoint(compute)
	if err != nil {
		return err
	}
	if legacy.MatchString(base) {
		return legacyError(base)
	}
	return fmt.Errorf("%w: the compute service offers no microversions; %s need 2.%d (OpenStack Pike) at least", ErrUnsupported, why, need)
}

// legacy is the path of Nova's API from before there were microversions. It takes
// every request and leaves out of it what is newer, such as tags.
var legacy = regexp.MustCompile(`/v2(/.*)?$`)

func legacyError(base string) error {
	return &Error{Op: "check the compute service", Kind: ErrUnsupported, Message: fmt.Sprintf(
		"%s takes no microversion and would drop the tags of servers; if it is the legacy API, set compute_endpoint_override: %s in clouds.yaml",
		withoutQuery(base), withoutQuery(legacy.ReplaceAllString(base, "/v2.1")))}
}

// versionProof is what is known of an endpoint of the compute service.
type versionProof struct {
	base  string
	shown bool  // its answers say which microversion they are in
	err   error // nil where it takes microversions
}

// checkVersion makes sure, from an answer of the compute service, that it is in
// the microversion that was asked for. It looks at every answer, because what is
// behind an address can change. An answer that does not say so leads to a question,
// unless that was asked already. Without an answer, what earlier ones showed counts.
func (c *Client) checkVersion(ctx context.Context, base string, answer *http.Response) error {
	known := c.proof.Load()
	if known != nil && known.base != base {
		known = nil
	}
	if c.Microversion().IsZero() || known != nil && answer == nil {
		return known.result()
	}
	asked, answered, shown := versionsOf(answer)
	var err error
	switch {
	case shown:
		err = mismatch(base, asked, answered)
	case known != nil && known.err == nil && !known.shown:
		return nil
	default:
		if err = c.probeVersion(ctx, base); errors.Is(err, ErrTransient) {
			return err
		}
	}
	c.proof.Store(&versionProof{base: base, shown: shown, err: err})
	return err
}

// noteVersion remembers from the answer to a call that changed something whether
// another such call may be sent. It is no failure of the call: what it made is
// there.
func (c *Client) noteVersion(base string, answer *http.Response) {
	if asked, answered, shown := versionsOf(answer); shown && !asked.IsZero() && asked != answered {
		c.proof.Store(&versionProof{base: base, shown: true, err: mismatch(base, asked, answered)})
	}
}

// mismatch is the error for an answer in another microversion; nil for the same.
func mismatch(base string, asked, answered Microversion) error {
	if answered == asked {
		return nil
	}
	return &Error{Op: "check the compute service", Kind: ErrUnsupported, Message: fmt.Sprintf(
		"%s answered in microversion %s, and was asked for %s", withoutQuery(base), answered, asked)}
}

// result is what to tell a caller; nothing is known of a nil proof.
func (p *versionProof) result() error {
	if p == nil {
		return nil
	}
	return p.err
}

// probeVersion asks for a microversion that cannot exist, for an answer without
// the header may come through a proxy that drops it. Nova refuses it, in any
// version that has them.
func (c *Client) probeVersion(ctx context.Context, base string) error {
	const op, impossible = "check the compute service", "2.99999"
	attemptCtx, cancel := context.WithTimeout(ctx, c.patience.overdue(call{method: http.MethodGet}))
	defer cancel()
	var answer struct {
		Flavors []Resource `json:"flavors"`
	}
	_, err := c.session.provider.Request(attemptCtx, http.MethodGet, base+"flavors/detail?limit=1", &gophercloud.RequestOpts{ //nolint:bodyclose // gophercloud closes what it decodes
		OkCodes: []int{http.StatusOK}, JSONResponse: &answer, MoreHeaders: versionHeaders(impossible),
	})
	if err == nil && answer.Flavors != nil {
		return legacyError(base)
	}
	if err == nil {
		return &Error{Op: op, Kind: ErrTransient, Message: "something else than the service answers at " + withoutQuery(base)}
	}
	failed := failure(op, compute, err, false, &c.session.secrets)
	if failed.Status != http.StatusNotAcceptable {
		return failed
	}
	return nil
}

// versionsOf reads the microversion that was asked for, and that of the answer.
func versionsOf(answer *http.Response) (asked, answered Microversion, ok bool) {
	if answer == nil || answer.Request == nil {
		return asked, answered, false
	}
	asked, _ = versionOf(answer.Request.Header)
	answered, ok = versionOf(answer.Header)
	return asked, answered, ok
}

// versionOf reads the microversion that a request or an answer is in.
func versionOf(header http.Header) (Microversion, bool) {
	for _, value := range header.Values("OpenStack-API-Version") {
		if version, isCompute := strings.CutPrefix(value, "compute "); isCompute {
			minor, ok := parseMinor(version)
			return Microversion{minor}, ok
		}
	}
	minor, ok := parseMinor(header.Get("X-OpenStack-Nova-API-Version"))
	return Microversion{minor}, ok
}

func versionHeaders(version string) map[string]string {
	return map[string]string{"X-OpenStack-Nova-API-Version": version, "OpenStack-API-Version": "compute " + version}
}

func parseMinor(version string) (int, bool) {
	major, minor, ok := strings.Cut(version, ".")
	if !ok || major != "2" {
		return 0, false
	}
	n, err := strconv.Atoi(minor)
	return n, err == nil && n > 0
}
