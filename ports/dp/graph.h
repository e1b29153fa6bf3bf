/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DP_GRAPH_H
#define DP_GRAPH_H

/*
 * Directed point graphs: which endpoints the processes of a program have, and which edges join
 * them, told by a Graphviz file.
 *
 *     digraph figure1 {
 *         a [process = 0, nid = 1, dpid = 1];
 *         b [process = 1, nid = 1, dpid = 5];      another process of node 1
 *         a -> b;                                  the channel <1,1> -> <5,1>
 *     }
 *
 * Each `process` of the paper's definition is a group of vertices: those with the same attribute
 * `process`, a number from 0 on. It is the process of that rank. `nid` is its node, as in the
 * paper: several processes may share one, and then their DPIDs are disjoint. An edge joins
 * endpoints of different processes.
 *
 *     dp_graph_t* graph = dp_graph_read("figure-1.dot");
 *     int fd = dp_graph_fd(graph, 1, 1);           the endpoint <1,1>, if it is this process's,
 *                                                  with its edges
 *
 * Reading the file opens the endpoints of the calling process and sets the targets of all their
 * edges; every process reads the same file. The graph can be changed while running: each change is
 * made by all processes that it concerns, or by all.
 *
 * Threads       One at a time for each graph.
 * Results       As dp.h: -1, or null, with errno and dp_last_error().
 * Source        The paper, 2. The functions and the file are a reconstruction.
 */

#include "dp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dp_graph dp_graph_t;

/* Reads a file, or text that is one. ENOENT, EINVAL: what is wrong with it says dp_last_error(): no
 * numbers where they must be, two endpoints of one node with one DPID, an edge within a process,
 * more processes than ranks. */
DP_API dp_graph_t* dp_graph_read(const char* path);
DP_API dp_graph_t* dp_graph_parse(const char* text);

/* Closes the endpoints. */
DP_API void dp_graph_free(dp_graph_t* graph);

/* The descriptor of the endpoint <dpid, nid> of this process. ENOENT: there is no such endpoint;
 * EREMOTE: it is another process's. */
DP_API int dp_graph_fd(const dp_graph_t* graph, int dpid, int nid);

/* Adds an endpoint to a process; deletes one, and the edges linked to it. EEXIST, ENOENT,
 * EINVAL. */
DP_API int dp_graph_add_point(dp_graph_t* graph, int dpid, int nid, int process);
DP_API int dp_graph_remove_point(dp_graph_t* graph, int dpid, int nid);

/* Adds or deletes the edge <dpid, nid> -> <to_dpid, to_nid>. EEXIST, ENOENT, EINVAL: within a
 * process. */
DP_API int dp_graph_add_edge(dp_graph_t* graph, int dpid, int nid, int to_dpid, int to_nid);
DP_API int dp_graph_remove_edge(dp_graph_t* graph, int dpid, int nid, int to_dpid, int to_nid);

/* How many there are of each; and how many edges lead to the endpoint <dpid, nid>. */
DP_API int dp_graph_points(const dp_graph_t* graph);
DP_API int dp_graph_edges(const dp_graph_t* graph);
DP_API int dp_graph_edges_to(const dp_graph_t* graph, int dpid, int nid);

#ifdef __cplusplus
}
#endif

#endif /* DP_GRAPH_H */
