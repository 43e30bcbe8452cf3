/* Loaded before Siconos (LD_PRELOAD): Debian's package is built with assertions, two of which walk over the whole graph
 * of contacts each time a contact is added, so that a step costs the square of their number (a hundred seconds per step
 * for 1000 spheres). These functions, always content, stand in for them, as in a release build; nothing is computed by them.
 * The names are those of SiconosGraph<Interaction, DynamicalSystem, ...>::state_assert() const and
 * ::adjacent_vertices_ok() const, and of the graph with the two exchanged. */
#define GRAPH_I "_ZNK12SiconosGraphISt10shared_ptrI11InteractionES0_I15DynamicalSystemE21InteractionProperties25DynamicalSystemProperties15GraphPropertiesE"
#define GRAPH_D "_ZNK12SiconosGraphISt10shared_ptrI15DynamicalSystemES0_I11InteractionE25DynamicalSystemProperties21InteractionProperties15GraphPropertiesE"

_Bool interactions_state(const void *graph) __asm__(GRAPH_I "12state_assertEv");
_Bool interactions_adjacent(const void *graph) __asm__(GRAPH_I "20adjacent_vertices_okEv");
_Bool interactions_exists(const void *graph, const void *vertex) __asm__(GRAPH_I "22adjacent_vertex_existsERKPv");
_Bool systems_state(const void *graph) __asm__(GRAPH_D "12state_assertEv");
_Bool systems_adjacent(const void *graph) __asm__(GRAPH_D "20adjacent_vertices_okEv");
_Bool systems_exists(const void *graph, const void *vertex) __asm__(GRAPH_D "22adjacent_vertex_existsERKPv");

_Bool interactions_state(const void *graph) { (void)graph; return 1; }
_Bool interactions_adjacent(const void *graph) { (void)graph; return 1; }
_Bool systems_state(const void *graph) { (void)graph; return 1; }
_Bool systems_adjacent(const void *graph) { (void)graph; return 1; }
_Bool interactions_exists(const void *graph, const void *vertex) { (void)graph, (void)vertex; return 0; }
_Bool systems_exists(const void *graph, const void *vertex) { (void)graph, (void)vertex; return 0; }
