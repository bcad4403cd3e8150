package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// Services that are called, and computeRoot for Nova's version document.
const (
	compute     = "compute"
	network     = "network"
	image       = "image"
	volume      = "volume"
	identity    = "identity"
	computeRoot = "compute root"
)

// catalogTypes are the types of a service in the catalogue, the present one
// first: Cinder's changed with its versions.
func catalogTypes(service string) []string {
	if service == volume {
		return []string{"block-storage", "volumev3", "block-store", "volumev2", "volume"}
	}
	return []string{service}
}

// endpoints are the addresses of the services, each with the slash that paths
// follow, and why there is none of a service that has none.
type endpoints struct {
	region    string
	addresses map[string]string
	missing   map[string]error
}

// chooseEndpoints picks the endpoint of each service from the catalogue, by
// region and interface. An override in clouds.yaml wins. Only the compute service
// has to be there.
func chooseEndpoints(catalog []tokens.CatalogEntry, creds credentials, project string) (endpoints, error) {
	chosen := endpoints{region: creds.region, addresses: map[string]string{}, missing: map[string]error{}}
	for _, service := range []string{compute, network, image, volume} {
		address, region, err := chooseEndpoint(catalog, service, cmp.Or(creds.regions[service], chosen.region), creds, project)
		if err != nil {
			chosen.missing[service] = &Error{Op: "find the " + service + " service", Kind: ErrInvalid, Message: err.Error()}
			continue
		}
		chosen.addresses[service] = address
		if service == compute {
			// The others are looked for where the servers are.
			chosen.region = region
		}
	}
	if err := chosen.missing[compute]; err != nil {
		return endpoints{}, err
	}
	chosen.addresses[computeRoot] = versionRoot(chosen.addresses[compute])
	return chosen, nil
}

// chooseEndpoint finds the address of one service, and the region that it is in.
func chooseEndpoint(catalog []tokens.CatalogEntry, service, region string, creds credentials, project string) (address, in string, err error) {
	offered := endpointsOf(catalog, service, creds.interfaceOf(service))
	fitting := slices.DeleteFunc(slices.Clone(offered), func(e tokens.Endpoint) bool { return !inRegion(e, region) })
	if own := creds.overrides[service]; own != "" {
		address, err = versioned(service, own, project)
		if len(fitting) > 0 {
			region = nameOf(fitting[0])
		}
		return address, region, err
	}
	switch regions := regionsOf(fitting); {
	case len(offered) == 0:
		return "", "", fmt.Errorf("the catalogue has no %s endpoint for it", creds.interfaceOf(service))
	case len(fitting) == 0:
		return "", "", fmt.Errorf("region %q does not have it; these do: %s", region, strings.Join(regionsOf(offered), ", "))
	case len(regions) > 1:
		return "", "", fmt.Errorf("it is in several regions: %s; set region_name in clouds.yaml, or OS_REGION_NAME", strings.Join(regions, ", "))
	}
	address, err = versioned(service, fitting[0].URL, project)
	return address, nameOf(fitting[0]), err
}

// endpointsOf are the endpoints of a service on an interface, in an order that
// does not depend on the catalogue's: Nova's legacy API comes last.
func endpointsOf(catalog []tokens.CatalogEntry, service, iface string) []tokens.Endpoint {
	var found []tokens.Endpoint
	for _, kind := range catalogTypes(service) {
		var ofKind []tokens.Endpoint
		for _, entry := range catalog {
			for _, endpoint := range entry.Endpoints {
				if entry.Type == kind && strings.TrimSuffix(endpoint.Interface, "URL") == iface {
					ofKind = append(ofKind, endpoint)
				}
			}
		}
		slices.SortFunc(ofKind, func(a, b tokens.Endpoint) int {
			return cmp.Or(
				cmp.Compare(nameOf(a), nameOf(b)),
				cmp.Compare(legacyRank(a.URL), legacyRank(b.URL)),
				cmp.Compare(a.URL, b.URL))
		})
		found = append(found, ofKind...)
	}
	return found
}

func nameOf(endpoint tokens.Endpoint) string { return cmp.Or(endpoint.RegionID, endpoint.Region) }

func regionsOf(offered []tokens.Endpoint) []string {
	names := map[string]bool{}
	for _, endpoint := range offered {
		names[nameOf(endpoint)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func inRegion(endpoint tokens.Endpoint, region string) bool {
	return region == "" || region == endpoint.Region || region == endpoint.RegionID
}

// apiVersion is a version in the path of an address.
var apiVersion = regexp.MustCompile(`^v\d+(\.\d+)?$`)

// apiVersions are the versions of a service that are spoken here, the one that is
// meant where none is given first.
func apiVersions(service string) []string {
	return map[string][]string{
		compute:  {"v2.1", "v2", "v2.0"},
		network:  {"v2.0"},
		image:    {"v2"},
		volume:   {"v3", "v2"},
		identity: {"v3"},
	}[service]
}

// versioned completes the address of a service with the version of its API, and
// with the slash that paths follow. Catalogues and people write it with and
// without either, with a project behind it, and below any path.
func versioned(service, address, project string) (string, error) {
	address = strings.NewReplacer("%(project_id)s", project, "%(tenant_id)s", project, "$(project_id)s", project, "$(tenant_id)s", project).Replace(strings.TrimSpace(address))
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return "", errors.New("its address is not valid")
	case parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Host == "":
		return "", fmt.Errorf("its address has to begin with https:// or http://, not %q", withoutQuery(address))
	case parsed.User != nil:
		return "", fmt.Errorf("its address may not have a user or a password in it: %s", withoutQuery(address))
	}
	known := apiVersions(service)
	segments := slices.DeleteFunc(strings.Split(parsed.EscapedPath(), "/"), func(s string) bool { return s == "" })
	last := len(segments) - 1
	switch at := versionAt(segments, known); {
	case service == identity && at >= 0:
		segments = segments[:at+1] // such as /v3/auth/tokens
	case at >= 0:
	case last >= 0 && apiVersion.MatchString(segments[last]):
		segments[last] = known[0] // another version of the same service
	default:
		segments = append(segments, known[0])
		if service == volume && project != "" {
			segments = append(segments, project)
		}
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String() + "/" + strings.Join(segments, "/") + "/", nil
}

// versionAt is where the last of the known versions stands in a path; -1 if none
// does.
func versionAt(segments, known []string) int {
	for i, segment := range slices.Backward(segments) {
		if slices.Contains(known, segment) {
			return i
		}
	}
	return -1
}

// legacyRank puts addresses of Nova's legacy API behind others.
func legacyRank(address string) int {
	if legacy.MatchString(address) {
		return 1
	}
	return 0
}

// versionRoot is where the version document of a complete address is: what may
// follow the version is a project.
func versionRoot(address string) string {
	segments := strings.Split(address, "/")
	at := versionAt(segments, apiVersions(compute))
	return strings.Join(segments[:at+1], "/") + "/"
}
