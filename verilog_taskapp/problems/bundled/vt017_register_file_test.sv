// Bench of vt017_register_file: register file with bypass.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_rdata_a;
    int errortime_rdata_a;
    int errors_rdata_b;
    int errortime_rdata_b;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       we;
  logic [2:0] waddr;
  logic [7:0] wdata;
  logic [2:0] raddr_a;
  logic [2:0] raddr_b;
  wire  [7:0] rdata_a_ref;
  wire  [7:0] rdata_a_dut;
  wire  [7:0] rdata_b_ref;
  wire  [7:0] rdata_b_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .we(we),
    .waddr(waddr),
    .wdata(wdata),
    .raddr_a(raddr_a),
    .raddr_b(raddr_b),
    .rdata_a(rdata_a_ref),
    .rdata_b(rdata_b_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .we(we),
    .waddr(waddr),
    .wdata(wdata),
    .raddr_a(raddr_a),
    .raddr_b(raddr_b),
    .rdata_a(rdata_a_dut),
    .rdata_b(rdata_b_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_rdata_a = rdata_a_ref ^ rdata_a_ref;
  wire        match_rdata_a = (rdata_a_dut ^ open_rdata_a) === (rdata_a_ref ^ open_rdata_a);
  wire  [7:0] open_rdata_b = rdata_b_ref ^ rdata_b_ref;
  wire        match_rdata_b = (rdata_b_dut ^ open_rdata_b) === (rdata_b_ref ^ open_rdata_b);
  wire        tb_match = match_rdata_a && match_rdata_b;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_rdata_a) begin
      if (stats1.errors_rdata_a == 0) stats1.errortime_rdata_a = $time;
      stats1.errors_rdata_a = stats1.errors_rdata_a + 1;
    end
    if (!match_rdata_b) begin
      if (stats1.errors_rdata_b == 0) stats1.errortime_rdata_b = $time;
      stats1.errors_rdata_b = stats1.errors_rdata_b + 1;
    end
  end

  integer i;
  initial begin
    reset <= 1'b1;
    we <= 1'b0;
    waddr <= 3'd1;
    wdata <= 8'h5a;
    raddr_a <= 3'd1;
    raddr_b <= 3'd2;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    // Fill every register, looking at the one being written and at the one before.
    for (i = 0; i < 16; i = i + 1) @(posedge clk) begin
      we <= 1'b1;
      waddr <= i[2:0];
      wdata <= 8'h80 + 8'd7 * i;
      raddr_a <= i[2:0];
      raddr_b <= i[2:0] - 3'd1;
    end
    // A write and a read of the same register while in reset.
    @(posedge clk) reset <= 1'b1;
    we <= 1'b1;
    waddr <= 3'd5;
    raddr_a <= 3'd5;
    raddr_b <= 3'd5;
    @(posedge clk) reset <= 1'b0;
    we <= 1'b0;
    for (i = 0; i < 8; i = i + 1) @(posedge clk) begin
      raddr_a <= i[2:0];
      raddr_b <= ~i[2:0];
    end
    repeat (450) @(posedge clk) begin
      we <= $random;
      waddr <= $random;
      wdata <= $random;
      raddr_a <= $urandom;
      raddr_b <= ($random & 1) ? waddr : $random;
      reset <= ($urandom & 15) == 0;
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_rdata_a != 0)
      $display("Hint: Output 'rdata_a' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_rdata_a, stats1.errortime_rdata_a);
    else
      $display("Hint: Output 'rdata_a' has no mismatches.");
    if (stats1.errors_rdata_b != 0)
      $display("Hint: Output 'rdata_b' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_rdata_b, stats1.errortime_rdata_b);
    else
      $display("Hint: Output 'rdata_b' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
