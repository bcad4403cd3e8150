package cloud

import (
	"cmp"
	"fmt"
	"maps"
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

// chooseEndpoints picks the endpoint of each service from the catalogue, by
// region and interface. An override in clouds.yaml wins.
func chooseEndpoints(catalog []tokens.CatalogEntry, creds credentials) (map[string]string, error) {
	chosen := map[string]string{}
	for _, service := range []string{compute, network, image} {
		endpoint := creds.overrides[service]
		if endpoint == "" {
			var err error
			if endpoint, err = chooseEndpoint(catalog, service, creds); err != nil {
				return nil, err
			}
		}
		chosen[service] = versioned(service, endpoint)
	}
	if endpoint := volumeEndpoint(catalog, creds); endpoint != "" {
		chosen[volume] = strings.TrimSuffix(endpoint, "/") + "/"
	}
	root, _, _ := strings.Cut(chosen[compute], "/v2.1/")
	chosen[computeRoot] = root + "/v2.1/"
	return chosen, nil
}

// volumeEndpoint is that of Cinder, which clouds do without; its type in the
// catalogue changed with its versions.
func volumeEndpoint(catalog []tokens.CatalogEntry, creds credentials) string {
	if own := creds.overrides[volume]; own != "" {
		return own
	}
	for _, kind := range []string{"block-storage", "volumev3", "block-store", "volume"} {
		if endpoint, err := chooseEndpoint(catalog, kind, creds); err == nil {
			return endpoint
		}
	}
	return ""
}

func chooseEndpoint(catalog []tokens.CatalogEntry, service string, creds credentials) (string, error) {
	regions := map[string]bool{}
	for _, endpoint := range endpointsOf(catalog, service, creds) {
		if inRegion(endpoint, creds.region) {
			return endpoint.URL, nil
		}
		regions[endpoint.Region] = true
	}
	e := &Error{Op: "find the " + service + " service", Kind: ErrInvalid}
	if len(regions) > 0 {
		e.Message = fmt.Sprintf("region %q does not have it; these do: %s",
			creds.region, strings.Join(slices.Sorted(maps.Keys(regions)), ", "))
	} else {
		e.Message = fmt.Sprintf("the catalogue has no %s endpoint for it", creds.iface)
	}
	return "", e
}

// endpointsOf are the endpoints of a service for the chosen interface.
func endpointsOf(catalog []tokens.CatalogEntry, service string, creds credentials) []tokens.Endpoint {
	var endpoints []tokens.Endpoint
	for _, entry := range catalog {
		for _, endpoint := range entry.Endpoints {
			if entry.Type == service && endpoint.Interface == creds.iface {
				endpoints = append(endpoints, endpoint)
			}
		}
	}
	return endpoints
}

func inRegion(endpoint tokens.Endpoint, region string) bool {
	return region == "" || region == endpoint.Region || region == endpoint.RegionID
}

// regionOf is where the servers are: the region that is asked for, or else the
// one that the catalogue leads to, so that naming it later changes nothing.
func regionOf(catalog []tokens.CatalogEntry, creds credentials) string {
	for _, endpoint := range endpointsOf(catalog, compute, creds) {
		if inRegion(endpoint, creds.region) {
			return cmp.Or(endpoint.RegionID, endpoint.Region)
		}
	}
	return creds.region
}

// apiVersion is the version in the path of an endpoint.
var apiVersion = regexp.MustCompile(`/v\d+(\.\d+)?(/|$)`)

// versioned completes an endpoint with the API version, and with the slash
// that paths follow. Catalogues hold it with and without either.
func versioned(service, endpoint string) string {
	endpoint = strings.TrimSuffix(endpoint, "/")
	suffix := map[string]string{compute: "/v2.1", network: "/v2.0", image: "/v2"}[service]
	if !apiVersion.MatchString(endpoint) {
		endpoint += suffix
	}
	return endpoint + "/"
}
