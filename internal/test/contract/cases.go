package contract

// Cases gives the whole contract.
func Cases() []Case {
	var all []Case
	all = append(all, discoveryCases()...)
	all = append(all, identityCases()...)
	all = append(all, computeCases()...)
	all = append(all, serverCases()...)
	all = append(all, actionCases()...)
	all = append(all, refusalCases()...)
	all = append(all, listingCases()...)
	all = append(all, quotaCases()...)
	all = append(all, imageCases()...)
	all = append(all, networkCases()...)
	all = append(all, volumeCases()...)
	all = append(all, weatherCases()...)
	return all
}

const nowhere = "00000000-0000-0000-0000-000000000000"

// Methods of HTTP, short, for the tables of calls.
const (
	get  = "GET"
	post = "POST"
	put  = "PUT"
	del  = "DELETE"
)

type object = map[string]any

func named(names ...string) []any {
	var list []any
	for _, name := range names {
		list = append(list, object{"name": name})
	}
	return list
}
