/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directed point graph of the paper's Figure 1: three processes, two of them on one node, and
 * five channels.
 *
 *     rmem run -n 3 -- dp-figure1 figure-1.dot
 *
 * Every process reads the same graph, which opens its endpoints and sets its edges. Each endpoint
 * with edges sends its name along them, and each reads as many names as edges lead to it, when poll
 * says that one is there. Then the graph changes while it runs: the channel <1,1> -> <5,1> goes,
 * and <1,1> -> <1,2> comes.
 */
#include <dp/dp.h>
#include <dp/graph.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int points[][2] = {{1, 1}, {2, 1}, {5, 1}, {6, 1}, {1, 2}, {3, 2}}; /* dpid, nid */
enum { kPoints = sizeof points / sizeof points[0], kPatienceMs = 20000 };

static int check(int result, const char* call) {
    if (result < 0) {
        perror(call);
        exit(1);
    }
    return result;
}

/* An endpoint of this process, or -1. */
static int mine(const dp_graph_t* graph, int i) {
    return dp_graph_fd(graph, points[i][0], points[i][1]);
}

/* Its name, and the ends of its edges. A packet sent before its endpoint is open would be lost:
   hence Go-Back-N. */
static void tell(int fd, int i) {
    char name[32];
    const int length = snprintf(name, sizeof name, "<%d,%d>", points[i][0], points[i][1]);
    check(dp_reliable(fd, 1), "dp_reliable");
    if (dp_write(fd, name, length + 1) >= 0)
        check(dp_drain(fd, kPatienceMs * 1000000LL), "dp_drain");
}

static void hear(int fd, int i) {
    struct pollfd ready = {fd, POLLIN, 0};
    char* name;
    if (check(poll(&ready, 1, kPatienceMs), "poll") == 0) {
        fprintf(stderr, "nothing came to <%d,%d>\n", points[i][0], points[i][1]);
        exit(1);
    }
    check(dp_read(fd, &name), "dp_read");
    printf("%s -> <%d,%d>\n", name, points[i][0], points[i][1]);
    check(dp_fsync(fd, 1), "dp_fsync");
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fputs("usage: rmem run -n 3 -- dp-figure1 <graph.dot>\n", stderr);
        return 2;
    }
    dp_graph_t* graph = dp_graph_read(argv[1]);
    if (graph == NULL) {
        fprintf(stderr, "dp-figure1: %s\n", dp_last_error());
        return 1;
    }
    if (dp_nid() == 0) {
        printf("%d endpoints, %d channels\n", dp_graph_points(graph), dp_graph_edges(graph));
    }
    for (int i = 0; i < kPoints; ++i) {
        if (mine(graph, i) >= 0) tell(mine(graph, i), i);
    }
    for (int i = 0; i < kPoints; ++i) {
        for (int n = dp_graph_edges_to(graph, points[i][0], points[i][1]); n > 0; --n) {
            if (mine(graph, i) >= 0) hear(mine(graph, i), i);
        }
    }
    check(dp_graph_remove_edge(graph, 1, 1, 5, 1), "dp_graph_remove_edge");
    check(dp_graph_add_edge(graph, 1, 1, 1, 2), "dp_graph_add_edge");
    if (mine(graph, 0) >= 0) tell(mine(graph, 0), 0);
    if (mine(graph, 4) >= 0) hear(mine(graph, 4), 4);
    dp_graph_free(graph);
    return 0;
}
